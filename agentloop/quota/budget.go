package quota

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/helixd/helixd/eventlog/fact"
)

// Reservation is what a model call may spend of its tenant's day. A nil one is of a
// tenant without daily limits.
type Reservation struct {
	of                        *Quota
	key, session, call, model string
}

// Daily reports whether a tenant has a limit of what it spends a day.
func (q *Quota) Daily(tenant string) bool { return q.Of(tenant).daily() && q.days != nil }

// Reserve reserves what a session's next model call may use, until
// [Reservation.Settle] is called. call is unique for all time. A reservation that
// its process has not settled counts as spent from the session's next call on, at
// the latest after an hour. One that this returned an error for may be stored; the
// session's next one on this node replaces it.
//
// A call is let through if all reservations fit the rest of the day. If there is no
// other one, any rest will do: a tenant spends at most one call, and what calls use
// over their estimates, more than its limit.
//
// Errors: *Exceeded; what Days returns; what the context ended with.
func (q *Quota) Reserve(ctx context.Context, tenant, session, call, model string, estimate fact.TokenUsage) (*Reservation, error) {
	if !q.Daily(tenant) {
		return nil, nil
	}
	now := time.Now()
	r := &Reservation{q, dayKey(tenant, now), hashed(session), call, model}
	q.mu.Lock()
	if f, is := q.failed[r.session]; is {
		r.call = f.call // if it is stored, it is this one's: no call was made
	}
	q.mu.Unlock()
	tried := false // to save it: it may be stored
	err := q.change(ctx, r.key, func(d *day) (bool, error) {
		changed, err := d.reserve(r.session, r.call, now, r.spent(model, estimate), q.Of(tenant))
		tried = tried || changed && err == nil
		return changed, err
	})
	_, refused := errors.AsType[*Exceeded](err)
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case err == nil:
		delete(q.failed, r.session)
		return r, nil
	case tried && !refused:
		maps.DeleteFunc(q.failed, func(_ string, f failed) bool { return now.Sub(f.at) > openFor }) // they count as spent
		q.failed[r.session] = failed{r.call, now}
	}
	return nil, err
}

// failed is a reservation that could not be saved, and may be stored.
type failed struct {
	call string
	at   time.Time
}

// Settle replaces the reservation with what the call has used. model is as the
// provider names it; if that has no price, the price of the model that was reserved for
// counts. It can be repeated. Errors: as [Quota.Reserve], but for *Exceeded.
func (r *Reservation) Settle(ctx context.Context, model string, used fact.TokenUsage) error {
	if r == nil {
		return nil
	}
	return r.of.change(ctx, r.key, func(d *day) (bool, error) {
		return d.settle(r.session, r.call, r.spent(model, used)), nil
	})
}

func (r *Reservation) spent(model string, u fact.TokenUsage) Spent {
	u.Prompt, u.Completion = max(u.Prompt, 0), max(u.Completion, 0)
	return Spent{u.Prompt + u.Completion, max(r.of.Cost(u, model, r.model), 0)}
}

// Cost returns what tokens cost in USD, by the price of the first of the models that
// has one, 0 if none has.
func (q *Quota) Cost(u fact.TokenUsage, models ...string) float64 {
	if q == nil {
		return 0
	}
	prices := q.tenants.Load().Prices
	for _, model := range models {
		if price, ok := prices[model]; ok {
			return price.Cost(u)
		}
	}
	return 0
}

// spendable returns *Exceeded if nothing is left of a tenant's day.
func (q *Quota) spendable(ctx context.Context, tenant string, limits Limits) error {
	now := time.Now()
	d, _, err := q.day(ctx, dayKey(tenant, now))
	if err != nil {
		return err
	}
	if limit, most, is := limits.reached(d.Spent); is {
		return &Exceeded{Limit: limit, Most: most, After: untilTomorrow(now)}
	}
	return nil
}

// Spent returns what a tenant's settled calls have spent today, and what is reserved
// for those that are under way. It is zero without daily limits. Errors: what Days
// returns.
func (q *Quota) Spent(ctx context.Context, tenant string) (spent, reserved Spent, err error) {
	if !q.Daily(tenant) {
		return spent, reserved, nil
	}
	d, _, err := q.day(ctx, dayKey(tenant, time.Now()))
	for _, r := range d.Open {
		reserved.add(r.Spent)
	}
	return d.Spent, reserved, err
}
