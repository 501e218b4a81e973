//go:build !unix

package mcptool

import "os/exec"

// isolate does nothing: there are no process groups.
func isolate(*exec.Cmd) {}
