package wire

import (
	"sync"

	"github.com/klauspost/compress/zstd"
)

// codec compresses segments.
type codec struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

// encoderWindow is how far back the encoder looks, in bytes: further than a segment is
// large, unless one record fills it. The encoder keeps about twice as much in memory.
const encoderWindow = 1 << 20

// segmentCodec is shared by all logs of the process: it is safe for concurrent use, and
// its tables take some MiB.
var segmentCodec = sync.OnceValue(func() codec {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true), zstd.WithWindowSize(encoderWindow))
	if err != nil {
		panic(err) // the options are constants
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxUnpacked))
	if err != nil {
		panic(err)
	}
	return codec{encoder, decoder}
})

func (c codec) compress(b, to []byte) []byte { return c.encoder.EncodeAll(b, to) }

func (c codec) decompress(b []byte) ([]byte, error) { return c.decoder.DecodeAll(b, nil) }
