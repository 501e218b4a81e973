package quota

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"
)

const (
	// mostOpen is how many reservations a tenant has at a time. A day's value with
	// so many takes less than 512 KiB.
	mostOpen = 4096
	// openFor is after what time a reservation counts as spent: its process has died,
	// and nobody continues the session.
	openFor = time.Hour
)

// Days keeps one value for each tenant and day, for at least two days. Its methods
// are called concurrently, on all nodes.
type Days interface {
	// Load returns the value of a key, and its revision; nil and 0 if there is none.
	Load(ctx context.Context, key string) (value []byte, revision uint64, err error)
	// Save replaces a value that still has the revision; otherwise it returns false. If it
	// fails, the value may have been replaced.
	Save(ctx context.Context, key string, value []byte, revision uint64) (saved bool, err error)
}

// Spent is what model calls have used.
type Spent struct {
	Tokens int64   `json:"tokens"` // of prompts and answers
	USD    float64 `json:"usd"`
}

func (s *Spent) add(other Spent) {
	s.Tokens += other.Tokens
	s.USD += other.USD
}

// day is what a tenant has spent on one day, and what calls that are under way may
// spend.
type day struct {
	Spent Spent                  `json:"spent"`
	Open  map[string]reservation `json:"open,omitempty"` // by the hash of the session's id
}

// reservation is what one model call may spend. A session makes one at a time.
type reservation struct {
	Call string `json:"call"`
	At   int64  `json:"at"` // ms since the epoch
	Spent
}

// reserve adds a reservation of a session. It can be repeated: no call was made with the
// earlier one, which is replaced. Another one of the session is of a process that has died:
// the provider may have billed it.
func (d *day) reserve(session, call string, now time.Time, want Spent, limits Limits) (changed bool, err error) {
	mine := reservation{call, now.UnixMilli(), want}
	if d.Open[session] == mine {
		return false, nil
	}
	for by, r := range d.Open {
		switch {
		case by == session && r.Call == call:
			delete(d.Open, by)
			changed = true
		case by == session || now.UnixMilli()-r.At > openFor.Milliseconds():
			changed = d.settle(by, r.Call, r.Spent)
		}
	}
	if limit, most, is := limits.reached(d.Spent); is {
		return changed, &Exceeded{Limit: limit, Most: most, After: untilTomorrow(now)}
	}
	if len(d.Open) > 0 { // else it is let through: the rest may be less than any estimate
		sum := d.Spent
		for _, r := range d.Open {
			sum.add(r.Spent)
		}
		sum.add(want)
		limit, most, is := limits.passed(sum)
		if !is && len(d.Open) >= mostOpen {
			limit, most, is = modelCalls, mostOpen, true
		}
		if is {
			return changed, &Exceeded{Limit: limit, Most: most, InFlight: true}
		}
	}
	if d.Open == nil {
		d.Open = map[string]reservation{}
	}
	d.Open[session] = mine
	return true, nil
}

// settle replaces a call's reservation with what it has spent. It can be repeated.
func (d *day) settle(session, call string, spent Spent) (changed bool) {
	if d.Open[session].Call != call {
		return false
	}
	delete(d.Open, session)
	d.Spent.add(spent)
	return true
}

// modelCalls names the limit of reservations.
const modelCalls = "modelCalls"

func (l Limits) daily() bool { return l.TokensPerDay > 0 || l.USDPerDay > 0 }

// reached returns the daily limit of which nothing is left.
func (l Limits) reached(s Spent) (limit string, most float64, is bool) {
	switch {
	case l.TokensPerDay > 0 && s.Tokens >= l.TokensPerDay:
		return TokensPerDay, float64(l.TokensPerDay), true
	case l.USDPerDay > 0 && s.USD >= l.USDPerDay:
		return USDPerDay, l.USDPerDay, true
	}
	return "", 0, false
}

// passed returns the daily limit that is less than s.
func (l Limits) passed(s Spent) (limit string, most float64, is bool) {
	switch {
	case l.TokensPerDay > 0 && s.Tokens > l.TokensPerDay:
		return TokensPerDay, float64(l.TokensPerDay), true
	case l.USDPerDay > 0 && s.USD > l.USDPerDay:
		return USDPerDay, l.USDPerDay, true
	}
	return "", 0, false
}

// untilTomorrow is the time until the next day begins, in UTC.
func untilTomorrow(now time.Time) time.Duration {
	const length = 24 * time.Hour // Unix time has no leap seconds
	return now.Truncate(length).Add(length).Sub(now)
}

// dayKey is the key of a tenant's day. It does not show the name.
func dayKey(tenant string, now time.Time) string {
	return now.UTC().Format(time.DateOnly) + "." + hashed(tenant)
}

func hashed(name string) string {
	sum := sha256.Sum256([]byte(name))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// change replaces a day with what f makes of it, unless f returns false. It returns
// f's error.
func (q *Quota) change(ctx context.Context, key string, f func(*day) (bool, error)) error {
	unlock, err := q.locks.Lock(ctx, key) // most conflicts are between calls of one node
	if err != nil {
		return err
	}
	defer unlock()
	for {
		d, revision, err := q.day(ctx, key)
		if err != nil {
			return err
		}
		changed, verdict := f(&d)
		if !changed {
			return verdict
		}
		value, err := json.Marshal(d)
		if err != nil {
			return fmt.Errorf("quota: day %s: %w", key, err)
		}
		saved, err := q.days.Save(ctx, key, value, revision)
		if err != nil {
			return fmt.Errorf("quota: save day %s: %w", key, err)
		}
		if saved {
			return verdict
		}
	}
}

func (q *Quota) day(ctx context.Context, key string) (d day, revision uint64, err error) {
	value, revision, err := q.days.Load(ctx, key)
	if err != nil {
		return d, 0, fmt.Errorf("quota: load day %s: %w", key, err)
	}
	if value == nil {
		return d, revision, nil
	}
	if err := json.Unmarshal(value, &d); err != nil {
		return d, 0, fmt.Errorf("quota: day %s: %w", key, err)
	}
	return d, revision, nil
}
