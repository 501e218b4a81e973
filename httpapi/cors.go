package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/rs/cors"

	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/durable"
	"github.com/helixd/helixd/httpapi/responses"
)

// anyOrigin is the pattern of all origins.
const anyOrigin = "*"

// preflightAge is how long browsers may remember what is allowed.
const preflightAge = 10 * time.Minute

// ValidateOrigin reports whether an origin can be one of [Options].Origins:
// "*", or scheme://host[:port] exactly as browsers send it.
func ValidateOrigin(origin string) error {
	if origin == anyOrigin {
		return nil
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme == "" || u.Hostname() == "" || origin != u.Scheme+"://"+u.Host || !asBrowsersWrite(origin) ||
		strings.HasSuffix(u.Host, ":") || u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80" {
		return errors.New(`must be "*" or an origin as browsers send it, such as https://app.example or http://localhost:3000`)
	}
	return nil
}

// asBrowsersWrite reports whether an origin has none of the characters that
// browsers change before they send it.
func asBrowsersWrite(origin string) bool {
	return !strings.ContainsFunc(origin, func(c rune) bool {
		return c <= ' ' || c >= 0x7f || 'A' <= c && c <= 'Z' || strings.ContainsRune(`*%\,"`, c)
	})
}

// trust lets pages of some origins use the server.
func (s *Server) trust(origins []string) error {
	for _, o := range origins {
		if err := ValidateOrigin(o); err != nil {
			return fmt.Errorf("httpapi: origin %q %w", o, err)
		}
		if o == anyOrigin {
			continue
		}
		if err := s.origins.AddTrustedOrigin(o); err != nil {
			return fmt.Errorf("httpapi: %w", err)
		}
	}
	s.anyOrigin = slices.Contains(origins, anyOrigin)
	if s.anyOrigin && !s.gate.Authenticated {
		return errors.New(`httpapi: the origin "*" needs authentication: every web page could use this server`)
	}
	if len(origins) == 0 {
		return nil
	}
	o := cors.Options{
		AllowedOrigins: origins,
		AllowedMethods: []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete},
		AllowedHeaders: []string{
			"Authorization", "Content-Type", api.HeaderLastEventID, api.HeaderResumeFrom, api.HeaderExistingMessage, api.HeaderAgent,
			api.HeaderIdempotency, api.HeaderExpected, api.HeaderRequestID, "Traceparent",
		},
		ExposedHeaders: []string{api.HeaderSession, api.HeaderRequestID, api.HeaderRetryAfter},
		MaxAge:         int(preflightAge.Seconds()),
	}
	if s.opts.Protocols.DurableStreams {
		o.AllowedMethods = append(o.AllowedMethods, http.MethodPut)
		o.AllowedHeaders = append(o.AllowedHeaders, durable.RequestHeaders()...)
		o.ExposedHeaders = append(o.ExposedHeaders, durable.AnswerHeaders()...)
	}
	if s.opts.Protocols.Responses != nil {
		o.AllowedHeaders = append(o.AllowedHeaders, responses.RequestHeaders()...)
	}
	s.cors = cors.New(o)
	return nil
}

// checkOrigin refuses requests from pages of origins that are not trusted. If all origins
// are, the request must have a bearer token: a page can't read another page's token, while
// browsers add cookies and passwords by themselves.
func (s *Server) checkOrigin(r *http.Request) error {
	switch {
	case s.origins.Check(r) == nil:
		return nil
	case !s.anyOrigin:
		return auth.ErrForbidden
	case auth.BearerOf(r) == "":
		return auth.ErrUnauthorized
	}
	return nil
}
