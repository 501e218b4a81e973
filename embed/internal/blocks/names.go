package blocks

import (
	"path/filepath"
	"strconv"
	"strings"
)

// Account is the NATS account of helixd's streams: nats-server names their folder by it.
const Account = "HELIX"

// IsStream reports whether a folder is a stream's: jetstream/A/streams/S.
func IsStream(dir string) bool {
	parts := strings.Split(filepath.ToSlash(dir), "/")
	return len(parts) == 4 && parts[0] == "jetstream" && parts[2] == "streams"
}

// Index returns the number of a block of a stream's messages, 0 if the
// file is none.
func Index(name string) int {
	dir, file := filepath.Split(name)
	dir = filepath.Clean(dir)
	if filepath.Base(dir) != "msgs" || !IsStream(filepath.Dir(dir)) {
		return 0
	}
	return Number(file)
}

// Number is Index of a file's name in its folder.
func Number(file string) int {
	number, ok := strings.CutSuffix(file, ".blk")
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(number)
	if err != nil {
		return 0
	}
	return n
}

// streamOf returns the stream that a block's name is of, and the block's number.
func streamOf(name string) (stream string, index int) {
	return filepath.Base(filepath.Dir(filepath.Dir(name))), Index(name)
}
