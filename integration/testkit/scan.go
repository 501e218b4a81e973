package testkit

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// Scan returns the files below a server's data folder that contain one of the
// texts, as it is or compressed: in a compressed block, or in a part of a message that is
// compressed with zstd, such as a sealed segment. Segments store each
// JSON string of a payload as a whole. Scan proves that an
// erasure has left nothing.
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
		if d.Type()&fs.ModeSymlink != 0 { // to the batches that a server stages in memory
			target, err := filepath.EvalSymlinks(path)
			if os.IsNotExist(err) {
				return nil
			}
			if err != nil {
				return err
			}
			staged, err := Scan(ctx, target, texts...)
			files = append(files, staged...)
			return err
		}
		content, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if holds(content, texts) {
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("scan: %w", err)
	}
	return files, nil
}

// holds reports whether a file holds one of the texts.
func holds(content []byte, texts []string) bool {
	for _, plain := range [][]byte{content, decompressed(content)} {
		if containsAny(plain, texts) {
			return true
		}
		for frame := range zstdFrames(plain) {
			if containsAny(frame, texts) {
				return true
			}
		}
	}
	return false
}

func containsAny(b []byte, texts []string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return bytes.Contains(b, []byte(text)) })
}

// zstdMagic begins a zstd frame (RFC 8878, 3.1.1).
var zstdMagic = []byte("\x28\xb5\x2f\xfd")

// zstdFrames yields what is in b that is compressed with zstd. A frame is valid until
// the next one.
func zstdFrames(b []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if !bytes.Contains(b, zstdMagic) {
			return
		}
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxScanned))
		if err != nil {
			return
		}
		defer d.Close()
		var frame []byte
		for {
			i := bytes.Index(b, zstdMagic)
			if i < 0 {
				return
			}
			// After the frame comes what is no other one: an error, and what precedes.
			if frame, _ = d.DecodeAll(b[i:], frame[:0]); !yield(frame) {
				return
			}
			b = b[i+len(zstdMagic):]
		}
	}
}

// maxScanned bounds what one frame is decompressed to.
const maxScanned = 256 << 20

// decompressed returns the content of a compressed block: "cmp", the
// algorithm, the size, then an S2 stream with a checksum after it.
func decompressed(block []byte) []byte {
	begin := bytes.Index(block, []byte("\xff\x06\x00\x00S2sTwO"))
	if !bytes.HasPrefix(block, []byte("cmp")) || begin < 0 {
		return nil
	}
	var plain bytes.Buffer
	_, _ = plain.ReadFrom(s2.NewReader(bytes.NewReader(block[begin:]))) // until the checksum
	return plain.Bytes()
}
