package local

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// decision is what the filter says of a call. The machine of package bpf reads
// words as networks do, and the kernel as it stores them.
func decision(t *testing.T, program []bpf.Instruction, arch, call uint32, args ...uint32) uint32 {
	t.Helper()
	vm, err := bpf.NewVM(program)
	require.NoError(t, err)
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data[offsetCall:], call)
	binary.BigEndian.PutUint32(data[offsetArch:], arch)
	for i, a := range args {
		binary.BigEndian.PutUint32(data[offsetArgs+8*i:], a)
	}
	n, err := vm.Run(data)
	require.NoError(t, err)
	return uint32(n)
}

func TestFilter(t *testing.T) {
	if err := filterProblem(); err != nil {
		t.Skip("calls are not filtered here:", err)
	}
	const allowed = uint32(unix.SECCOMP_RET_ALLOW)
	refused := func(errno unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(errno) }
	for _, host := range []bool{false, true} {
		for _, own := range []bool{false, true} {
			program := filter(host, own)
			raw, err := bpf.Assemble(program)
			require.NoError(t, err)
			require.LessOrEqual(t, len(raw), unix.BPF_MAXINSNS)
			says := func(want, call uint32, args ...uint32) {
				t.Helper()
				require.Equal(t, want, decision(t, program, auditArch, call, args...), "call %d %v", call, args)
			}
			require.Equal(t, uint32(unix.SECCOMP_RET_KILL_PROCESS), decision(t, program, unix.AUDIT_ARCH_I386, unix.SYS_READ), "another architecture")
			says(refused(unix.ENOSYS), x32Call|unix.SYS_READ)
			says(refused(unix.ENOSYS), 0xffffffff)
			for _, call := range []uint32{unix.SYS_CLONE3, unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET, unix.SYS_SHMGET} {
				says(refused(unix.ENOSYS), call)
			}
			for _, call := range refusedCalls {
				says(refused(unix.EPERM), call)
			}
			for _, call := range []uint32{unix.SYS_READ, unix.SYS_WRITE, unix.SYS_OPENAT, unix.SYS_EXECVE, unix.SYS_MMAP, unix.SYS_SOCKETPAIR, unix.SYS_CONNECT, unix.SYS_FUTEX} {
				says(allowed, call)
			}
			says(allowed, unix.SYS_CLONE, uint32(unix.SIGCHLD))
			says(allowed, unix.SYS_CLONE, unix.CLONE_VM|unix.CLONE_FS|unix.CLONE_FILES|unix.CLONE_SIGHAND|unix.CLONE_THREAD)
			says(allowed, unix.SYS_UNSHARE, unix.CLONE_FS)
			for _, flag := range []uint32{unix.CLONE_NEWUSER, unix.CLONE_NEWNS, unix.CLONE_NEWNET, unix.CLONE_NEWPID, unix.CLONE_NEWIPC, unix.CLONE_NEWUTS, unix.CLONE_NEWCGROUP} {
				says(refused(unix.EPERM), unix.SYS_CLONE, flag|uint32(unix.SIGCHLD))
				says(refused(unix.EPERM), unix.SYS_UNSHARE, unix.CLONE_FS|flag)
			}
			says(refused(unix.EPERM), unix.SYS_IOCTL, 0, unix.TIOCSTI)
			says(allowed, unix.SYS_IOCTL, unix.TIOCSTI, unix.TIOCGWINSZ)
			says(allowed, unix.SYS_SOCKET, unix.AF_UNIX)
			for _, family := range []uint32{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK} {
				want := allowed
				if !host && !own { // no namespace keeps the machine's network away
					want = refused(unix.EAFNOSUPPORT)
				}
				says(want, unix.SYS_SOCKET, family)
			}
			for _, family := range []uint32{unix.AF_VSOCK, unix.AF_PACKET, unix.AF_ALG, unix.AF_BLUETOOTH} {
				says(refused(unix.EAFNOSUPPORT), unix.SYS_SOCKET, family)
			}
		}
	}
}
