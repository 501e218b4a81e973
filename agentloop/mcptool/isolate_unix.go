//go:build unix

package mcptool

import (
	"os/exec"
	"syscall"
)

// isolate keeps the terminal's Ctrl-C from the command: stopping helixd
// that way would also fail the calls that a restart continues.
func isolate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
