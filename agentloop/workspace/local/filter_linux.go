package local

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The kernel gives a filter these fields of struct seccomp_data, whose arguments
// are 64 bits each.
const (
	offsetCall = 0
	offsetArch = 4
	offsetArgs = 16
)

// x32Call is set in the numbers of amd64's calls with 32-bit pointers.
const x32Call = 0x40000000

// newNamespaces are flags of clone and unshare.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// missingCalls fail as on a kernel that has none of them, which programs are ready for:
// clone3's flags are in memory, where a filter can't look, and libraries take clone instead;
// the others make memory that belongs to no process, which no limit of a process counts.
var missingCalls = []uint32{unix.SYS_CLONE3, unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET, unix.SYS_SHMGET}

// refusedCalls fail with EPERM: what changes mounts, namespaces, other processes,
// keys, clocks or the kernel, and parts of the kernel that have often been a way
// out and that few programs need.
var refusedCalls = append([]uint32{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_SETNS,
	unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD, unix.SYS_PROCESS_MADVISE,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_REBOOT,
	unix.SYS_BPF, unix.SYS_USERFAULTFD, unix.SYS_PERF_EVENT_OPEN, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_ADD_KEY, unix.SYS_KEYCTL, unix.SYS_REQUEST_KEY,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SYSLOG, unix.SYS_VHANGUP,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES,
}, refusedHere...)

// argument decides by one argument of a call whether it is refused, and how. All
// checked arguments have 32 bits: the kernel ignores the others.
type argument struct {
	call    uint32
	index   int
	matches []bpf.Instruction // of the accumulator; the last one skips one instruction if the call is not refused
	errno   unix.Errno
}

// family allows sockets of some families only.
func family(call uint32, allowed ...uint32) argument {
	a := argument{call: call, errno: unix.EAFNOSUPPORT}
	for i, f := range allowed {
		a.matches = append(a.matches, bpf.JumpIf{Cond: bpf.JumpEqual, Val: f, SkipTrue: uint8(len(allowed) - i)})
	}
	return a
}

// filter returns the program that decides about each call of a command.
func filter(hostNetwork, ownNetwork bool) []bpf.Instruction {
	refuse := func(errno unix.Errno) bpf.Instruction {
		return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)}
	}
	families := []uint32{unix.AF_UNIX}
	if hostNetwork || ownNetwork { // those of the namespace, and not AF_VSOCK, which knows none
		families = append(families, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK)
	}
	anyOf := func(bits uint32) []bpf.Instruction {
		return []bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: bits, SkipTrue: 1}}
	}
	program := []bpf.Instruction{
		// A call of another architecture has other numbers.
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS},
		bpf.LoadAbsolute{Off: offsetCall, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: x32Call, SkipTrue: 1},
		refuse(unix.ENOSYS),
	}
	for _, call := range missingCalls {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: call, SkipTrue: 1}, refuse(unix.ENOSYS))
	}
	for _, call := range refusedCalls {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: call, SkipTrue: 1}, refuse(unix.EPERM))
	}
	for _, a := range []argument{
		{unix.SYS_CLONE, 0, anyOf(newNamespaces), unix.EPERM},
		{unix.SYS_UNSHARE, 0, anyOf(newNamespaces), unix.EPERM},
		{unix.SYS_IOCTL, 1, []bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.TIOCSTI, SkipTrue: 1}}, unix.EPERM}, // types on a terminal
		family(unix.SYS_SOCKET, families...),
	} {
		// The number is in the accumulator, and has to be there again after it.
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: a.call, SkipTrue: uint8(len(a.matches) + 3)},
			bpf.LoadAbsolute{Off: uint32(offsetArgs + 8*a.index), Size: 4})
		program = append(program, a.matches...)
		program = append(program, refuse(a.errno), bpf.LoadAbsolute{Off: offsetCall, Size: 4})
	}
	return append(program, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW})
}

// filterProblem says why calls can't be filtered here, or nil.
func filterProblem() error {
	if auditArch == 0 {
		return fmt.Errorf("there is no list of system calls for %s", runtime.GOARCH)
	}
	action := uint32(unix.SECCOMP_RET_KILL_PROCESS)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	if errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	return nil
}

// filterCalls has the kernel filter this thread's calls from now on, and those of
// the programs that it becomes. It needs no_new_privs.
func filterCalls(j job) error {
	program, err := bpf.Assemble(filter(j.HostNetwork, j.Isolated))
	if err != nil {
		return err
	}
	if len(program) > unix.BPF_MAXINSNS {
		return errors.New("the filter is too long")
	}
	raw := make([]unix.SockFilter, len(program))
	for i, in := range program {
		raw[i] = unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	p := unix.SockFprog{Len: uint16(len(raw)), Filter: &raw[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&p)))
	runtime.KeepAlive(raw)
	if errno != 0 {
		return errno
	}
	return nil
}
