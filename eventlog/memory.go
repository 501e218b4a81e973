package eventlog

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"regexp"
	"strings"
)

// MemoryScopeKind says whose memories a scope has.
type MemoryScopeKind string

// Kinds of scopes.
const (
	MemoryOfUser    MemoryScopeKind = "user"
	MemoryOfAgent   MemoryScopeKind = "agent"
	MemoryOfSession MemoryScopeKind = "session"
)

// MemoryScope is whose memories there are: one user's, one agent type's, or one
// session tree's. Each scope has its own log.
type MemoryScope struct {
	Kind MemoryScopeKind `json:"kind"`
	ID   string          `json:"id"`
	// Tenant is whose user or agent it is: users of two tenants may have the same
	// name. Empty: of the sessions without a tenant. A session's scope has none, since
	// a session belongs to one tenant.
	Tenant string `json:"tenant,omitempty"`
}

// Validate returns a [*ValidationError] unless the scope can have a log.
func (s MemoryScope) Validate() error {
	switch s.Kind {
	case MemoryOfUser, MemoryOfAgent, MemoryOfSession:
	default:
		return &ValidationError{Field: "scope", Reason: "must be user, agent or session"}
	}
	if reason := idProblem(s.ID, MaxID); reason != "" {
		return &ValidationError{Field: "id", Reason: reason}
	}
	if digest.MatchString(s.ID) {
		return &ValidationError{Field: "id", Reason: "must not be # and a digest"}
	}
	if s.Tenant == "" {
		return nil
	}
	switch reason := idProblem(s.Tenant, MaxID); {
	case s.Kind == MemoryOfSession:
		return &ValidationError{Field: "tenant", Reason: "is not for a session's memories"}
	case reason != "":
		return &ValidationError{Field: "tenant", Reason: reason}
	case digest.MatchString(s.Tenant):
		return &ValidationError{Field: "tenant", Reason: "must not be # and a digest"}
	}
	return nil
}

// digest replaces a long id or tenant in the name of a log. No id or tenant may have this form:
// it could name the log of another one.
var digest = regexp.MustCompile(`^#[0-9a-f]{64}$`)

// memoryLogs is the prefix of the ids of scopes' logs. The ids of sessions can't
// begin with it, see [ValidateClientSessionID].
const memoryLogs = "~memory/"

// LogID is the id of the scope's log. If it would be too long, the scope's id and its
// tenant are replaced by their digests.
func (s MemoryScope) LogID() string {
	id := s.logID(func(name string) string { return name })
	if len(id) <= MaxSessionID {
		return id
	}
	return s.logID(func(name string) string {
		sum := sha256.Sum256([]byte(name))
		return "#" + hex.EncodeToString(sum[:])
	})
}

func (s MemoryScope) logID(short func(string) string) string {
	kind := string(s.Kind)
	if s.Tenant != "" {
		kind += "@" + url.PathEscape(short(s.Tenant)) // without a slash, which begins the id
	}
	return memoryLogs + kind + "/" + short(s.ID)
}

// IsMemoryLog reports whether a log is a memory scope's and no session's.
func IsMemoryLog(id string) bool { return strings.HasPrefix(id, memoryLogs) }

// MemoryScopeOf returns the scope whose LogID a log has. Of an id that was
// replaced by its digest it is a scope with the same log.
func MemoryScopeOf(log string) (s MemoryScope, ok bool) {
	rest, ok := strings.CutPrefix(log, memoryLogs)
	if !ok {
		return s, false
	}
	kind, id, ok := strings.Cut(rest, "/")
	kind, tenant, _ := strings.Cut(kind, "@")
	tenant, err := url.PathUnescape(tenant)
	return MemoryScope{Kind: MemoryScopeKind(kind), ID: id, Tenant: tenant}, ok && err == nil
}
