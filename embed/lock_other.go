//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package embed

import "os"

// lock makes dir. There is no advisory lock that works everywhere; here it
// is up to the operator that no second server uses the folder.
func lock(dir string) (unlock func(), err error) {
	return func() {}, os.MkdirAll(dir, 0o750)
}
