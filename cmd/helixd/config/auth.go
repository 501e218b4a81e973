package config

// Auth says who may do what. Nothing configured means nobody, unless
// AllowUnauthenticated.
type Auth struct {
	AllowUnauthenticated bool    `json:"allowUnauthenticated"`
	Tokens               []Token `json:"tokens"`
	JWT                  JWT     `json:"jwt"`
}

// Token is a bearer token and what it may do.
type Token struct {
	Token      Secret   `json:"token"`
	Name       string   `json:"name"`
	Operations []string `json:"operations"` // globs on the operation tag; default ["*"]
	Sessions   []string `json:"sessions"`   // globs on the session id; default ["*"]
}

func (t *Token) setDefaults() {
	t.Operations = []string{"*"}
	t.Sessions = []string{"*"}
}

// JWT accepts JSON Web Tokens.
type JWT struct {
	JWKSFile        string `json:"jwksFile"`
	Issuer          string `json:"issuer"`
	Audience        string `json:"audience"`
	SessionsClaim   string `json:"sessionsClaim"`   // default "helix_sessions"
	OperationsClaim string `json:"operationsClaim"` // default "helix_operations"
}
