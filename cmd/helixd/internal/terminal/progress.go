package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Progress shows on a terminal, in one line, how far a command is: a bar, the rate and the
// time that is left, as far as they are known. Nil shows nothing.
type Progress struct {
	w      io.Writer
	what   string
	total  int64 // 0: not known
	amount func(int64) string
	now    func() time.Time

	began, drawn time.Time
	done         int64
}

// NewProgress returns one that counts up to total, if that is not 0, in what amount shows. If
// w is no terminal, it returns nil.
func NewProgress(w io.Writer, what string, total int64, amount func(int64) string) *Progress {
	if !IsTerminal(w) {
		return nil
	}
	return &Progress{w: w, what: what, total: total, amount: amount, now: time.Now, began: time.Now()}
}

// Things counts things of a noun, for NewProgress.
func Things(noun string) func(int64) string {
	return func(n int64) string { return Count(int(n), noun) }
}

// Size is that of a regular file in bytes, and 0 of any other stream: the total of a Progress.
func Size(stream any) int64 {
	if f, ok := stream.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			return info.Size()
		}
	}
	return 0
}

// redraw is the least time between two lines.
const redraw = 100 * time.Millisecond

// Add counts more as done.
func (p *Progress) Add(n int64) {
	if p != nil {
		p.Set(p.done + n)
	}
}

// Set says how much is done.
func (p *Progress) Set(done int64) {
	if p == nil {
		return
	}
	p.done = done
	now := p.now()
	if now.Sub(p.drawn) < redraw {
		return
	}
	p.drawn = now
	// The cursor stays at the beginning, so that anything else that is written replaces the line.
	columns := Width(p.w)
	if columns == 0 {
		columns = 80
	}
	_, _ = io.WriteString(p.w, clearLine+p.line(columns-1, now.Sub(p.began))+"\r") // what is shown is not what is done
}

// clearLine clears the rest of a line, as of ECMA-48.
const clearLine = "\x1b[K"

// Left says how much of the total is not done. The total grows if that is more.
func (p *Progress) Left(n int64) {
	if p != nil {
		p.total = max(p.total, n)
		p.Set(p.total - n)
	}
}

// Close removes the line, also for a text that is written before there is more to show.
func (p *Progress) Close() {
	if p != nil && !p.drawn.IsZero() {
		_, _ = io.WriteString(p.w, clearLine)
		p.drawn = time.Time{}
	}
}

// Reader counts what is read of r.
func (p *Progress) Reader(r io.Reader) io.Reader {
	if p == nil {
		return r
	}
	return io.TeeReader(r, p)
}

// Write counts bytes, and keeps none.
func (p *Progress) Write(b []byte) (int, error) {
	p.Add(int64(len(b)))
	return len(b), nil
}

// barWidth is that of a bar, in columns.
const barWidth = 20

// settled is how long a rate is not worth telling.
const settled = time.Second

// line is what is shown after some time, in so many columns.
func (p *Progress) line(columns int, elapsed time.Duration) string {
	parts := []string{p.what}
	if p.total > 0 {
		part := min(float64(p.done)/float64(p.total), 1)
		full := int(part * barWidth)
		parts = append(parts, "["+strings.Repeat("#", full)+strings.Repeat("-", barWidth-full)+"]", fmt.Sprintf("%3.0f %%", part*100))
	}
	if p.amount != nil {
		parts = append(parts, p.amount(p.done))
	}
	switch rate := float64(p.done) / elapsed.Seconds(); {
	case elapsed < settled:
	case p.amount == nil || p.done == 0:
		parts = append(parts, elapsed.Truncate(time.Second).String())
	default:
		parts = append(parts, p.amount(int64(rate))+"/s")
		if p.total > p.done {
			left := time.Duration(float64(p.total-p.done) / rate * float64(time.Second))
			parts = append(parts, left.Truncate(time.Second).String()+" left")
		}
	}
	text := []rune(Printable(strings.Join(parts, "  ")))
	return string(text[:min(len(text), columns)])
}
