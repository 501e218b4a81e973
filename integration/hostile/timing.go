//go:build unix

package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/integration/deployment"
)

// pairs is how many times two questions are compared, and surprise how many
// standard deviations from a fair coin tell that one takes longer.
const (
	pairs    = 300
	surprise = 5
)

// timing asks two questions in turn, of which the victim's data make one true. If
// one of them is slower clearly more often than the other, its time tells.
func (w *world) timing(ctx context.Context) error {
	for _, q := range []struct {
		what         string
		there, never request
	}{
		{
			"a word that only another has said",
			request{http.MethodGet, "/search", "q=" + marker, ""}, request{http.MethodGet, "/search", "q=" + marker[:len(marker)-1] + "z", ""},
		},
		{
			"a session of another's",
			request{http.MethodGet, "/sessions/" + w.secret(0), "", ""}, request{http.MethodGet, "/sessions/" + absentSession, "", ""},
		},
		{
			"a listing below another's session",
			request{http.MethodGet, "/sessions", "parentSessionId=" + w.secret(0), ""}, request{http.MethodGet, "/sessions", "parentSessionId=" + absentSession, ""},
		},
		{
			"a user of another's",
			request{http.MethodGet, "/sessions", "userId=" + victimUser, ""}, request{http.MethodGet, "/sessions", "userId=vero", ""},
		},
	} {
		slower := 0
		for done := 0; done < pairs; {
			took, limited := [2]time.Duration{}, time.Duration(0)
			first := rand.IntN(2)
			for i := range 2 {
				which := (first + i) % 2
				began := time.Now()
				a, err := w.send(ctx, []request{q.there, q.never}[which])
				if err != nil {
					return err
				}
				took[which] = time.Since(began)
				if rateLimited(a) {
					limited = retryAfter(a)
				}
			}
			if limited > 0 { // its time tells of the limit
				if err := deployment.Sleep(ctx, limited); err != nil {
					return err
				}
				continue
			}
			done++
			if took[0] > took[1] {
				slower++
			}
		}
		z := (float64(slower) - pairs/2) / math.Sqrt(pairs/4)
		w.note("%s: slower %d of %d times", q.what, slower, pairs)
		if math.Abs(z) > surprise {
			return fmt.Errorf("%s can be distinguished by the answer's time: slower %d of %d times", q.what, slower, pairs)
		}
	}
	return nil
}

// garbage sends bytes that mean nothing to every route.
func (w *world) garbage(ctx context.Context) error {
	random := rand.New(rand.NewPCG(1, 2))
	for _, r := range httpapi.Routes() {
		for range 5 {
			raw := make([]byte, 1+random.IntN(2000))
			for i := range raw {
				raw[i] = byte(random.Uint32())
			}
			d := disguise{text: func(string, string) string { return string(raw[:min(len(raw), 200)]) }}
			q := place{query: "sessionId={query}&q={query}&id={query}"}.with(r, d, "", ownSession)
			if r.Method == http.MethodPost {
				q.body = string(raw)
			}
			a, err := w.ask(ctx, q)
			if err == nil {
				err = harmless(a)
			}
			if err != nil {
				return fmt.Errorf("%s %s with garbage: %d: %w: %.300s", r.Method, r.Pattern, a.status, err, a.body)
			}
		}
	}
	return nil
}
