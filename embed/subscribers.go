package embed

import (
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// accountSubscribers is the account of clients that may subscribe to one session. They are
// not in the account of other clients from outside, whose requests can be answered to any
// subject of their account.
const accountSubscribers = "SUBSCRIBERS"

// newServer returns a server that also takes the subscribers whose rights one
// of the keys has signed.
//
// A server takes JWTs in operator mode only, where every user has one; in any
// other mode it drops them before they can be checked. So this one trusts an operator whose
// key is thrown away, which makes it keep JWTs, and a gatekeeper decides about all clients in
// its place.
//
// Without keys there is no gatekeeper: it is nil.
func newServer(opts *server.Options, o Options) (*server.Server, *gatekeeper, error) {
	if len(o.Subscribers) == 0 {
		srv, err := server.NewServer(opts)
		return srv, nil, err
	}
	for _, k := range o.Subscribers {
		if !nkeys.IsValidPublicAccountKey(k) {
			return nil, nil, fmt.Errorf("subscribers: %q is no account's public key", k)
		}
	}
	nobody, err := nkeys.CreateOperator()
	if err != nil {
		return nil, nil, err
	}
	operator, err := nobody.PublicKey()
	if err != nil {
		return nil, nil, err
	}
	opts.TrustedKeys = []string{operator}
	if opts.SystemAccount == "" {
		opts.SystemAccount = server.DEFAULT_SYSTEM_ACCOUNT
		opts.Accounts = append(opts.Accounts, server.NewAccount(opts.SystemAccount))
	}
	for _, a := range opts.Accounts {
		a.Issuer = operator // without it the server would not accept the system account, and have no JetStream
	}
	g := &gatekeeper{
		signers: o.Subscribers, users: opts.Users, anonymous: opts.NoAuthUser, revoked: o.Revoked, log: o.Logger,
		subscribers: map[uint64]connection{}, refused: map[string]bool{},
	}
	opts.CustomClientAuthentication = g
	g.srv, err = server.NewServer(opts)
	return g.srv, g, err
}

// gatekeeper lets clients in: subscribers by their JWT, all others as the
// server itself would do.
type gatekeeper struct {
	srv       *server.Server
	signers   []string                        // public keys
	users     []*server.User                  // by name and password, which is no hash
	anonymous string                          // the user without credentials; empty: none
	revoked   func(subject, name string) bool // nil: no right is
	log       *slog.Logger

	mu          sync.Mutex
	subscribers map[uint64]connection // by the client's id; some have left
	tidyAt      int                   // size of subscribers at which those that left are removed
	refused     map[string]bool       // subjects of which the log says that a client was refused
}

// Check implements server.Authentication.
func (g *gatekeeper) Check(c server.ClientAuthentication) bool {
	if c.Kind() != server.CLIENT {
		return false
	}
	var user *server.User
	if o := c.GetOpts(); o.JWT != "" {
		user = g.subscriber(c) // a bad one does not make it anonymous
	} else {
		user = g.user(o)
	}
	if user == nil {
		return false
	}
	account, err := g.srv.LookupAccount(user.Account.GetName()) // that of the options is another
	if err != nil {
		return false
	}
	known := *user
	known.Account = account
	c.RegisterUser(&known)
	return true
}

// user returns whose name and password a client has, or nil.
func (g *gatekeeper) user(o *server.ClientOpts) *server.User {
	name := o.Username
	if name == "" && o.Password == "" && o.Token == "" && o.Nkey == "" {
		name = g.anonymous
	}
	for _, u := range g.users {
		if u.Username == name && subtle.ConstantTimeCompare([]byte(u.Password), []byte(o.Password)) == 1 {
			return u
		}
	}
	return nil
}

// subscriber returns what a client's JWT lets it do, or nil.
func (g *gatekeeper) subscriber(c server.ClientAuthentication) *server.User {
	o := c.GetOpts()
	claims, err := jwt.DecodeUserClaims(o.JWT) // which is signed by the issuer that it names
	if err != nil || !slices.Contains(g.signers, claims.Issuer) || claims.IssuerAccount != "" {
		return nil
	}
	problems := jwt.CreateValidationResults()
	claims.Validate(problems)
	expires := time.Unix(claims.Expires, 0)
	if problems.IsBlocking(true) || !time.Now().Before(expires) { // also without one
		return nil
	}
	subject, ok := onlyHears(claims)
	if !ok || !signed(c.GetNonce(), o.Sig, claims.Subject) || !g.register(c.GetID(), right{subject, claims.Name, claims.Subject}) {
		return nil
	}
	return &server.User{
		Username: claims.Subject,
		Account:  &server.Account{Name: accountSubscribers},
		Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Deny: []string{">"}},
			Subscribe: &server.SubjectPermission{Allow: []string{subject}},
		},
		ConnectionDeadline: expires,
	}
}

// onlyHears returns the live subject of the one session that the claims are
// about. Claims with any other content are refused, also those with further
// limits, which would not be enforced.
func onlyHears(c *jwt.UserClaims) (subject string, ok bool) {
	if len(c.Sub.Allow) != 1 || len(c.Sub.Deny) > 0 || len(c.Pub.Allow) > 0 || !slices.Equal(c.Pub.Deny, jwt.StringList{">"}) {
		return "", false
	}
	if c.Resp != nil || c.BearerToken || c.ProxyRequired || len(c.Src) > 0 || len(c.Times) > 0 || c.Locale != "" {
		return "", false
	}
	for _, t := range []string{jwt.ConnectionTypeStandard, jwt.ConnectionTypeWebsocket} { // either may be this one
		if !slices.Contains(c.AllowedConnectionTypes, t) {
			return "", false
		}
	}
	subject = c.Sub.Allow[0]
	return subject, liveSubject.MatchString(subject)
}

// liveSubject is the subject of one session: no wildcard, and no queue group
// after a space.
var liveSubject = regexp.MustCompile(`^helix\.live\.[A-Za-z0-9_%-]+$`)

// signed reports whether a user has signed the nonce of its connection.
func signed(nonce []byte, signature, user string) bool {
	raw, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil {
		return false
	}
	key, err := nkeys.FromPublicKey(user)
	return err == nil && len(nonce) > 0 && key.Verify(nonce, raw) == nil
}
