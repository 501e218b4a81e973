package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"

	"github.com/helixd/helixd/agentloop/remote/remotehttp"
)

// zstd is the media type of a backup.
const zstd = "application/zstd"

// Backup writes a backup of all sessions to w; rate bounds it, in bytes a second
// before they are compressed, at least 64 KiB; 0: as fast as it can. What it has
// written is whole only if it returns no error; package snapshot/backup reads
// it. It is not repeated. While the server works, it is waited for as long as
// ctx allows. Errors: w's, too.
func (c *Client) Backup(ctx context.Context, w io.Writer, rate int64) error {
	q := url.Values{}
	if rate != 0 {
		q.Set("rate", strconv.FormatInt(rate, 10))
	}
	k := get("backup", q)
	k.safe, k.Accept, k.Idle = false, zstd, -1
	return c.do(ctx, k, func(a *remotehttp.Response) error {
		switch {
		case !a.Is(zstd):
			return fmt.Errorf("%w: it is not of type %s", ErrMalformed, zstd)
		case !a.Framed():
			return fmt.Errorf("%w: neither a length nor an end is given", ErrMalformed)
		}
		to := &destination{w: w}
		_, err := io.Copy(to, a)
		switch {
		case err == nil, to.err != nil:
			return to.err
		case context.Cause(ctx) != nil:
			return context.Cause(ctx)
		}
		return ErrStreamDropped
	})
}

// destination remembers its own failure, to distinguish it from the connection's.
type destination struct {
	w   io.Writer
	err error
}

func (d *destination) Write(b []byte) (int, error) {
	n, err := d.w.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	d.err = errors.Join(d.err, err)
	return n, err
}
