package embed

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/s2"
)

// Scan returns the files below a server's data folder in which one of the
// texts stands, as it is or, in a compressed block, decompressed. It proves
// that an erasure has left nothing.
//
// A replicated stream's own log compresses large messages one by one; what
// comes early in such a message, as its subject does, is still found.
func Scan(ctx context.Context, dir string, texts ...string) (files []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) { // removed meanwhile
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		content, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return err
		}
		plain := decompressed(content)
		for _, text := range texts {
			if bytes.Contains(content, []byte(text)) || bytes.Contains(plain, []byte(text)) {
				files = append(files, path)
				break
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("embed: scan: %w", err)
	}
	return files, nil
}

// decompressed returns the content of a compressed block: "cmp", the
// algorithm, the size, then an S2 stream with a checksum behind it.
func decompressed(block []byte) []byte {
	begin := bytes.Index(block, []byte("\xff\x06\x00\x00S2sTwO"))
	if !bytes.HasPrefix(block, []byte("cmp")) || begin < 0 {
		return nil
	}
	var plain bytes.Buffer
	_, _ = plain.ReadFrom(s2.NewReader(bytes.NewReader(block[begin:]))) // until the checksum
	return plain.Bytes()
}
