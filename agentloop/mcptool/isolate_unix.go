//go:build unix

package mcptool

import (
	"os/exec"
	"syscall"
)

// isolate keeps the terminal's Ctrl-C from the command: whoever stops helixd
// so would also fail the calls that a restart carries on.
func isolate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
