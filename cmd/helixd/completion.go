package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/httpapi/client"
)

// completing is the first argument with which a shell asks what may follow. It is no command,
// since no person types it.
const completing = "__complete"

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help is shown by helixd completion --help.
func (completionCmd) Help() string {
	return "bash, in ~/.bashrc: source <(helixd completion bash). zsh, in ~/.zshrc after compinit: source <(helixd completion zsh). " +
		"fish: helixd completion fish > ~/.config/fish/completions/helixd.fish. Ids of sessions and agents are those of the daemon at HELIX_SERVER."
}

// Run prints a script that asks this program what may follow.
func (c completionCmd) Run(p *flags.Process) error {
	_, err := io.WriteString(p.Stdout, scripts[c.Shell])
	return err
}

var scripts = map[string]string{
	"bash": `_helixd() {
	local i n=-1 space line=$COMP_LINE word first
	local -a words
	# COMP_WORDS has the pieces of words between the characters of COMP_WORDBREAKS, such as = and :.
	# Pieces without a space between them are one word, of which a reply replaces the last piece only.
	for ((i = 0; i <= COMP_CWORD; i++)); do
		space=${line%%[![:space:]]*}
		[[ $i -eq 0 || -n $space ]] && n=$((n + 1))
		words[n]+=${COMP_WORDS[i]}
		line=${line#*"${COMP_WORDS[i]}"}
	done
	first=${words[n]%"${words[n]##*["$COMP_WORDBREAKS"]}"}
	first=${first%@} # which bash counts to the last piece
	COMPREPLY=()
	while IFS=$'\t' read -r word _; do
		COMPREPLY+=("${word#"$first"}")
	done < <("${words[0]}" __complete "${words[@]}" 2>/dev/null)
	if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]]; then
		compopt -o nospace
	fi
}
complete -F _helixd helixd
`,
	"zsh": `#compdef helixd
_helixd() {
	local -a found
	local word help
	while IFS=$'\t' read -r word help; do
		found+=("${word//:/\\:}:$help")
	done < <("${words[1]}" __complete "${(@)words[1,CURRENT]}" 2>/dev/null)
	_describe helixd found
}
if [ "$funcstack[1]" = _helixd ]; then
	_helixd "$@"
else
	compdef _helixd helixd
fi
`,
	"fish": `complete -c helixd -f -a '(helixd __complete (commandline -opc) (commandline -ct) 2>/dev/null)'
`,
}

// completion is a word that may follow, and its help.
type completion struct{ word, help string }

// complete prints what may stand for the last of the words of a command line, of which the
// first is the program.
func complete(w io.Writer, app *kong.Application, words []string, named func(kind string, words []string) []string) {
	if len(words) < 2 {
		return
	}
	last := words[len(words)-1]
	for _, c := range completions(app.Node, words[1:len(words)-1], last, named) {
		if strings.HasPrefix(c.word, last) {
			fmt.Fprintf(w, "%s\t%s\n", c.word, c.help)
		}
	}
}

// completions returns what may follow words; last is what is there of it.
func completions(node *kong.Node, words []string, last string, named func(kind string, words []string) []string) (all []completion) {
	all = []completion{}
	of := func(v *kong.Value) []completion {
		switch {
		case v.Enum != "":
			return plain(v.EnumSlice())
		case v.Tag.Type == "path", v.Name == "file":
			return plain(paths(last))
		case v.Name == "session", v.Tag.Type == "session":
			ids := named("session", words)
			for i, id := range ids {
				ids[i] = source.Argument(id)
			}
			return plain(ids)
		case v.Name == "agent":
			return plain(named(v.Name, words))
		}
		return nil
	}
	var value *kong.Flag // whose value is next
	given := 0           // arguments of the command
	for _, word := range words {
		switch child := childOf(node, word); {
		case value != nil:
			value = nil
		case strings.HasPrefix(word, "-"):
			if f := flagOf(node, word); f != nil && !f.IsBool() && !strings.Contains(word, "=") {
				value = f
			}
		case child != nil:
			node, given = child, 0
		default:
			given++
		}
	}
	switch {
	case value != nil:
		return of(value.Value)
	case strings.HasPrefix(last, "-"):
		for _, group := range node.AllFlags(true) {
			for _, f := range group {
				all = append(all, completion{"--" + f.Name, firstSentence(f.Help)})
			}
		}
		return all
	}
	for _, child := range node.Children {
		if !child.Hidden {
			all = append(all, completion{child.Name, firstSentence(child.Help)})
		}
	}
	if given < len(node.Positional) {
		all = append(all, of(node.Positional[given])...)
	}
	return all
}

func childOf(node *kong.Node, name string) *kong.Node {
	i := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == name })
	if i < 0 {
		return nil
	}
	return node.Children[i]
}

func flagOf(node *kong.Node, word string) *kong.Flag {
	name, _, _ := strings.Cut(word, "=")
	for _, group := range node.AllFlags(false) {
		for _, f := range group {
			if name == "--"+f.Name || f.Short != 0 && name == "-"+string(f.Short) {
				return f
			}
		}
	}
	return nil
}

func firstSentence(text string) string {
	first, _, _ := strings.Cut(text, ". ")
	return strings.TrimSuffix(first, ".")
}

func plain(words []string) (all []completion) {
	for _, word := range words {
		if terminal.Word(word) == word { // another would need quotes
			all = append(all, completion{word: word})
		}
	}
	return all
}

// paths returns the files that begin like a path; folders end with a slash.
func paths(begin string) (all []string) {
	dir, _ := filepath.Split(begin)
	entries, _ := os.ReadDir(filepath.Join(".", dir)) // of a folder that can't be read, none
	if filepath.IsAbs(dir) {
		entries, _ = os.ReadDir(dir)
	}
	for _, e := range entries {
		name := dir + e.Name()
		if e.IsDir() {
			name += "/"
		}
		all = append(all, name)
	}
	return all
}

// atDaemon returns the names of what a daemon has, if it answers soon.
func atDaemon(kind string, words []string) (names []string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	path := func(flag, variable string) string {
		if name := flagOr(words, flag, variable, ""); name != "" {
			return kong.ExpandPath(name) // a shell passes ~ as it is
		}
		return ""
	}
	f := source.DaemonFlags{
		Server: flagOr(words, "--server", "HELIX_SERVER", source.DefaultServer), Token: flagOr(words, "--token", "HELIX_TOKEN", ""),
		Trust: flags.Trust{CA: path("--ca", "HELIX_CA"), Cert: path("--cert", "HELIX_CERT"), Key: path("--cert-key", "HELIX_CERT_KEY")},
	}
	s := f.Connect()
	if kind == "agent" {
		r, _ := s.Ready(ctx) // no answer, no names
		return r.Agents
	}
	page, _ := s.Sessions(ctx, client.SessionFilter{}, client.Paging{Limit: 50})
	for _, session := range page.Items {
		names = append(names, session.SessionID)
	}
	return names
}

// flagOr is the value of a flag of a command line, of the environment, or another one.
func flagOr(words []string, flag, variable, other string) string {
	for i, word := range words {
		if value, ok := strings.CutPrefix(word, flag+"="); ok {
			return value
		}
		if word == flag && i+1 < len(words) {
			return words[i+1]
		}
	}
	if value := os.Getenv(variable); value != "" {
		return value
	}
	return other
}
