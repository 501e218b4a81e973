package local

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// refusedHere are calls that not every architecture has.
var refusedHere = []uint32{unix.SYS_NFSSERVCTL}
