package httpapi

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/internal/web"
)

// MinTicketKey is the length of the shortest [Options].TicketKey, in bytes.
const MinTicketKey = 32

// ticketParam is the query parameter that holds a ticket.
const ticketParam = "ticket"

// ticketContent is the content of a ticket, which is encrypted.
type ticketContent struct {
	Operation auth.Operation `json:"o"`
	Session   string         `json:"s"`
	Expires   int64          `json:"e"` // milliseconds since the epoch
	Token     string         `json:"t"` // the caller's bearer token; empty: it had none
}

// newTicketCipher returns the cipher of tickets, with a random key if there is none.
func newTicketCipher(key []byte) (cipher.AEAD, error) {
	switch {
	case key == nil:
		key = []byte(rand.Text() + rand.Text())
	case len(key) < MinTicketKey:
		return nil, fmt.Errorf("httpapi: the key of tickets must have at least %d bytes", MinTicketKey)
	}
	sum := sha256.Sum256(append([]byte("helixd stream tickets\n"), key...))
	block, err := aes.NewCipher(sum[:])
	if err != nil {
		return nil, fmt.Errorf("httpapi: tickets: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// ticket answers POST /sessions/{id}/tickets and /chat/{id}/tickets. Its
// operation is that of the streams which the ticket opens.
func (s *Server) ticket(w http.ResponseWriter, r *web.Request) error {
	if _, err := r.ReadOptObject(w); err != nil { // nothing in it is used
		return err
	}
	if _, err := s.opts.Log.Head(r.Context(), r.Session); err != nil {
		return err
	}
	expires := s.now().Add(api.TicketTTL).Truncate(time.Millisecond)
	content, err := json.Marshal(ticketContent{r.Op, r.Session, expires.UnixMilli(), auth.BearerOf(r.Request)})
	if err != nil {
		return fmt.Errorf("httpapi: ticket: %w", err)
	}
	sealed := s.tickets.Seal(nil, nil, content, nil)
	w.Header().Set("Cache-Control", "no-store")
	return r.Respond(w, http.StatusCreated, api.Ticket{Ticket: base64.RawURLEncoding.EncodeToString(sealed), ExpiresAt: expires.UTC()})
}

var errTicket = fmt.Errorf("%w: the ticket is not valid, or not any more", auth.ErrUnauthorized)

// redeemed returns a request with a ticket as a request with the token of the ticket's
// caller, so that all checks of the token apply.
func (s *Server) redeemed(r *http.Request, rt route, session, ticket string) (*http.Request, error) {
	if !rt.takesTicket() || r.Header.Get("Authorization") != "" {
		return r, nil
	}
	sealed, err := base64.RawURLEncoding.DecodeString(ticket)
	if err != nil {
		return r, errTicket
	}
	content, err := s.tickets.Open(nil, nil, sealed, nil)
	if err != nil {
		return r, errTicket
	}
	var t ticketContent
	if json.Unmarshal(content, &t) != nil || t.Operation != rt.op || t.Session != session || s.now().UnixMilli() >= t.Expires {
		return r, errTicket
	}
	r = r.Clone(r.Context())
	if t.Token != "" {
		r.Header.Set("Authorization", "Bearer "+t.Token)
	}
	return r, nil
}

// takesTicket reports whether the route accepts tickets.
func (rt route) takesTicket() bool {
	for param := range strings.FieldsSeq(rt.params) {
		if param == ticketParam {
			return true
		}
	}
	return false
}

// ValidateTicketKey reports whether a key can be [Options].TicketKey.
func ValidateTicketKey(key string) error {
	if len(key) < MinTicketKey {
		return errors.New("must have at least 32 bytes")
	}
	return nil
}
