//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package datadir

import "os"

// Lock only creates dir: there is no advisory lock that works everywhere. On this operating
// system the operator must not start a second server on the folder.
func Lock(dir string) (unlock func(), err error) {
	return func() {}, os.MkdirAll(dir, 0o750)
}
