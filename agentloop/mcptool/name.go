package mcptool

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"github.com/helixd/helixd/agentloop"
)

// maxName is how long a tool's name may be, in bytes.
const maxName = 64

var validName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// reserved are prefixes of the tools that the loop itself gives agents.
var reserved = []string{"__", agentloop.SubAgentPrefix, agentloop.CompanionPrefix}

// toolName is what an agent calls a server's tool.
func toolName(server, tool string) string {
	full := server + "_" + tool
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && validName.MatchString(string(r)) {
			return r
		}
		return '_'
	}, full)
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(full))
	end := "_" + hex.EncodeToString(sum[:4])
	return name[:maxName-len(end)] + end
}

// namer gives the tools of a server their names.
type namer struct {
	server string
	taken  map[string]string // the server's name of a tool, by the agent's
}

func (n *namer) name(tool string) (string, error) {
	name := toolName(n.server, tool)
	for _, prefix := range reserved {
		if strings.HasPrefix(name, prefix) {
			return "", fmt.Errorf("tool %q would be named %s: names that begin with %s are reserved", tool, name, prefix)
		}
	}
	if other, ok := n.taken[name]; ok {
		return "", fmt.Errorf("tools %q and %q would both be named %s", other, tool, name)
	}
	n.taken[name] = tool
	return name, nil
}
