package inspect

import (
	"errors"
	"net/url"
	"strconv"
	"time"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
)

// replayCmd shows a session's stream again, at the pace at which it was recorded.
type replayCmd struct {
	streamFlags
	Session  string        `arg:"" help:"Session id; SESSION@N: only chunks after N, or with --live the fork's place; SESSION@A..B: only chunks after A, up to B."`
	From     *uint64       `help:"Only chunks after this sequence." placeholder:"N"`
	To       *uint64       `help:"Only chunks up to this sequence; without it the head." placeholder:"N"`
	Speed    float64       `help:"How many times as fast as it was recorded; 0: without any pause." default:"1"`
	MaxPause time.Duration `help:"No pause is longer." default:"2s"`
	SSE      bool          `name:"sse" help:"Print the server-sent events as they are."`
	verifyFlags
	liveFlags
}

// chosen is the command with the sequences of SESSION@N or SESSION@A..B in its flags.
func (c replayCmd) chosen() (replayCmd, error) {
	only, err := source.StretchOr(c.Session, c.after(), c.To)
	if _, after, _, _ := source.Between(c.Session); after != nil || only.Point {
		c.From = &only.From
	}
	c.Session, c.To = only.Session, only.To
	return c, err
}

// after is the sequence after which the chunks are; 0: all of them.
func (c replayCmd) after() uint64 {
	if c.From == nil {
		return 0
	}
	return *c.From
}

// Validate makes what does not go together a matter of usage.
func (c replayCmd) Validate() error {
	c, err := c.chosen()
	if c.Speed < 0 {
		err = errors.New("--speed must not be negative")
	}
	return errors.Join(err, c.verifyFlags.check(c), c.liveFlags.check(c))
}

func (c replayCmd) Run(p *flags.Process) error {
	c, err := c.chosen()
	if err != nil {
		return err
	}
	s, err := c.Open(p.Ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	if c.Verify {
		return c.verify(p, s)
	}
	if c.Live {
		return c.goOn(p, s)
	}
	return c.play(p, s)
}

// play shows what a replay sends.
func (c replayCmd) play(p *flags.Process, s *source.Source) error {
	q := url.Values{
		"from":     {strconv.FormatUint(c.after(), 10)},
		"speed":    {strconv.FormatFloat(c.Speed, 'f', -1, 64)},
		"maxPause": {strconv.FormatInt(c.MaxPause.Milliseconds(), 10)},
	}
	if c.To != nil {
		q.Set("to", strconv.FormatUint(*c.To, 10))
	}
	return c.watch(p, s, c.Session, source.Session(c.Session, "/replay"), q, resume)
}

// watch shows the stream of a path; how is tell's. After the first event, a signal is not
// a failure: the user has seen enough.
func (c replayCmd) watch(p *flags.Process, s *source.Source, session, path string, q url.Values, how string) error {
	answer, err := stream(p.Ctx, s, path, q)
	if err != nil {
		return err
	}
	defer answer.Close()
	if c.SSE {
		err = terminal.PrintJSON(p.Stdout, answer)
	} else {
		err = c.tell(p, answer, session, c.after(), how)
	}
	if p.Ctx.Err() != nil {
		return nil
	}
	return err
}
