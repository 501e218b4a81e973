package control

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"

	"github.com/helixd/helixd/agentloop/remote/remotehttp"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
)

type appendCmd struct {
	source.DaemonFlags
	Session          string  `arg:"" type:"session" help:"Session id; the first append creates the session."`
	File             string  `arg:"" optional:"" default:"-" help:"Chunks, one a line; - is the standard input."`
	ExpectedSequence *uint64 `help:"Append only if the session's last sequence is this one; 0: only if it is new. Of the first batch."`
	IdempotencyKey   string  `help:"Makes it safe to repeat the command: batches have this key followed by -1, -2, …, and the end has -end."`
	End              bool    `help:"End the stream afterwards." xor:"end"`
	JSON             bool    `help:"Print JSON."`
	Fail             string  `help:"Fail the stream afterwards, with this error." placeholder:"TEXT" xor:"end"`
}

// Run sends the chunks in batches that are all or none each, and prints the
// sequences of the first and the last of all chunks, and how many there are.
func (c appendCmd) Run(p *flags.Process) error {
	in, err := p.Open(c.File)
	if err != nil {
		return err
	}
	defer in.Close()
	s := c.Connect()
	total, err := c.send(p.Ctx, s, in)
	if err == nil {
		err = c.finish(p.Ctx, s)
	}
	if err != nil && total.Count > 0 {
		err = fmt.Errorf("after sequence %d, with %d chunks appended: %w", total.LastSequence, total.Count, err)
	}
	if err != nil {
		return err
	}
	words := "nothing was appended"
	if total.Count > 0 {
		words = fmt.Sprintf("%s: sequences %d to %d", terminal.Count(total.Count, "chunk"), total.FirstSequence, total.LastSequence)
	}
	return terminal.Result(p.Stdout, c.JSON, total, words)
}

// batchBytes is the size that a batch is not filled beyond, well below what
// the daemon takes.
const batchBytes = api.MaxChunksBody / 2

// send appends what in holds, batch by batch.
func (c appendCmd) send(ctx context.Context, s *source.Source, in io.Reader) (total api.Appended, err error) {
	number := 0
	for batch, err := range batches(in, eventlog.MaxAppendRecords, batchBytes) {
		if err != nil {
			return total, err
		}
		number++
		h := map[string]string{}
		if key := c.key(strconv.Itoa(number)); key != "" {
			h[api.HeaderIdempotency] = key
		}
		if number == 1 && c.ExpectedSequence != nil {
			h[api.HeaderExpected] = strconv.FormatUint(*c.ExpectedSequence, 10)
		}
		done, err := c.post(ctx, s, h, batch)
		if err != nil {
			return total, err
		}
		if number == 1 {
			total.FirstSequence = done.FirstSequence
		}
		total.LastSequence = done.LastSequence
		total.Count += done.Count
	}
	return total, nil
}

// batches yields the lines of in that are not blank, in pieces of at most so
// many lines and, unless a single line is longer, bytes. The same input is
// always cut in the same way. A piece is valid until the next one.
func batches(in io.Reader, maxLines, maxBytes int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var batch bytes.Buffer
		count := 0
		all := source.Lines(in)
		for all.Scan() {
			line := bytes.TrimSpace(all.Bytes())
			if len(line) == 0 {
				continue
			}
			if count == maxLines || count > 0 && batch.Len()+len(line)+1 > maxBytes {
				if !yield(batch.Bytes(), nil) {
					return
				}
				batch.Reset()
				count = 0
			}
			batch.Write(line)
			batch.WriteByte('\n')
			count++
		}
		if err := all.Err(); err != nil {
			yield(nil, err)
		} else if count > 0 {
			yield(batch.Bytes(), nil)
		}
	}
}

// finish ends the stream if that is asked for.
func (c appendCmd) finish(ctx context.Context, s *source.Source) error {
	var err error
	switch o := (client.AppendOptions{IdempotencyKey: c.key("end")}); {
	case c.Fail != "":
		_, err = s.Fail(ctx, c.Session, c.Fail, o)
	case c.End:
		_, err = s.End(ctx, c.Session, nil, o)
	}
	return source.Explained(err)
}

func (c appendCmd) key(suffix string) string {
	if c.IdempotencyKey == "" {
		return ""
	}
	return c.IdempotencyKey + "-" + suffix
}

// post sends chunks as they were read, and returns what was appended.
func (c appendCmd) post(ctx context.Context, s *source.Source, header map[string]string, chunks []byte) (done api.Appended, err error) {
	answer, err := s.Send(ctx, remotehttp.Request{Method: http.MethodPost, Route: source.Session(c.Session, "/chunks"), Header: header, Body: chunks})
	if err != nil {
		return done, err
	}
	defer answer.Close()
	return done, answer.Decode(&done, source.MaxLine)
}
