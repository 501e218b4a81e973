package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/httpapi/api"
)

// completed are the words that complete a line, whose last word is what is there of the one
// that is asked for.
func completed(t *testing.T, line string) []string {
	t.Helper()
	k, err := newParser(new(cli))
	require.NoError(t, err)
	var out bytes.Buffer
	complete(&out, k.Model, strings.Split(line, " "), func(kind string, _ []string) []string {
		return map[string][]string{"session": {"s1", "s2", "like-a-point@9", "needs quotes"}, "agent": {"weather"}}[kind]
	})
	var words []string
	for row := range strings.Lines(out.String()) {
		word, _, _ := strings.Cut(row, "\t")
		words = append(words, word)
	}
	return words
}

func TestCompletion(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	require.NoError(t, os.Mkdir("data", 0o700))
	require.NoError(t, os.WriteFile(filepath.Join("data", "a.ndjson"), nil, 0o600))
	for line, want := range map[string][]string{
		"helixd re":                              {"resume", "records", "replay", "retain", "restore", "reload"},
		"helixd memories ":                       {"list", "search", "save", "forget", "erase", "process"},
		"helixd config s":                        {"schema"},
		"helixd completion ":                     {"bash", "zsh", "fish"},
		"helixd tail ":                           {"s1", "s2", "like-a-point@9@"},
		"helixd tail s1 ":                        nil,
		"helixd erase l":                         {"like-a-point@9@"},
		"helixd approve --call c s":              {"s1", "s2"},
		"helixd sessions --agent ":               {"weather"},
		"helixd run ":                            {"weather"},
		"helixd usage --by ":                     {"agent", "model", "user", "day"},
		"helixd usage --by=day --js":             {"--json"},
		"helixd tail --li":                       {"--lines"},
		"helixd --log-l":                         {"--log-level"},
		"helixd serve --config d":                {"data/"},
		"helixd import data/":                    {"data/a.ndjson"},
		"helixd import " + dir + "/data/":        {dir + "/data/a.ndjson"},
		"helixd nothing-like-this --at-all x y ": completed(t, "helixd "),
	} {
		require.Equal(t, want, completed(t, line), "%q", line)
	}
	require.Contains(t, completed(t, "helixd "), "doctor")
	require.NotContains(t, completed(t, "helixd "), completing)
	require.Empty(t, completed(t, "helixd"), "there is no word to complete")
}

// The scripts pass the words of the line on, and take the first column.
func TestCompletionScripts(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "helixd")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\nshift\nprintf 's-%s\\thelp: of it\\n' \"$@\"\n"), 0o700))
	for shell, ask := range map[string]string{
		"bash": "COMP_LINE='helixd tail s'; COMP_WORDS=(helixd tail s); COMP_CWORD=2; _helixd; printf '%s\\n' \"${COMPREPLY[@]}\"",
		"zsh":  "compdef() { }; . ./script; words=(helixd tail s); CURRENT=3; _describe() { printf '%s\\n' \"${found[@]%%:*}\" }; _helixd",
		"fish": "complete -C 'helixd tail s' | string split -f 1 \\t",
	} {
		t.Run(shell, func(t *testing.T) {
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skip("there is no " + shell)
			}
			script := filepath.Join(dir, "script")
			require.NoError(t, os.WriteFile(script, []byte(scripts[shell]), 0o600))
			if shell != "zsh" {
				ask = ". ./script; " + ask
			}
			cmd := exec.CommandContext(t.Context(), path, "-c", ask)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.ElementsMatch(t, []string{"s-helixd", "s-tail", "s-s"}, strings.Fields(string(out)))
		})
	}
}

// bash splits words at =, : and @, too, and replaces only the last piece, with an @ before it.
func TestBashCompletionOfWordsInPieces(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	dir := t.TempDir()
	script, given := filepath.Join(dir, "script"), filepath.Join(dir, "given")
	require.NoError(t, os.WriteFile(script, []byte(scripts["bash"]), 0o600))
	program := "#!/bin/sh\nshift\nprintf '%s\\n' \"$@\" > " + given + "\nfor last; do :; done\nprintf '%s1\\thelp\\n%s2\\t\\n' \"$last\" \"$last\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "helixd"), []byte(program), 0o700))
	for name, c := range map[string]struct {
		line, pieces  string // the pieces up to the cursor and after it, as bash makes them
		cursor        int    // at which piece it is
		words, offers []string
	}{
		"a URL":                {"helixd tail --server=http://127.0.0.1:8080 s", "helixd tail --server = http : //127.0.0.1 : 8080 s", 9, []string{"helixd", "tail", "--server=http://127.0.0.1:8080", "s"}, []string{"s1", "s2"}},
		"after a URL":          {"helixd tail --server http://h:1 ", "helixd tail --server http : //h : 1 ''", 8, []string{"helixd", "tail", "--server", "http://h:1", ""}, []string{"1", "2"}},
		"an id with colons":    {"helixd tail  a::b:c", "helixd tail a :: b : c", 6, []string{"helixd", "tail", "a::b:c"}, []string{"c1", "c2"}},
		"an id after a colon":  {"helixd tail a:", "helixd tail a :", 3, []string{"helixd", "tail", "a:"}, []string{"1", "2"}},
		"a point of a session": {"helixd state s@4", "helixd state s @ 4", 4, []string{"helixd", "state", "s@4"}, []string{"@41", "@42"}},
		"within a line":        {"helixd tail a:b --lines", "helixd tail a : b --lines", 4, []string{"helixd", "tail", "a:b"}, []string{"b1", "b2"}},
	} {
		t.Run(name, func(t *testing.T) {
			ask := fmt.Sprintf(`. ./script; COMP_WORDBREAKS=$' \t\n"\'@><=;|&(:'; COMP_LINE=%q; COMP_WORDS=(%s); COMP_CWORD=%d; _helixd; printf '%%s\n' "${COMPREPLY[@]}"`, c.line, c.pieces, c.cursor)
			cmd := exec.CommandContext(t.Context(), bash, "-c", ask)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			got, err := os.ReadFile(given)
			require.NoError(t, err)
			require.Equal(t, strings.Join(c.words, "\n")+"\n", string(got))
			require.Equal(t, c.offers, strings.Fields(string(out)))
		})
	}
}

// The daemon is asked as commands would ask it.
func TestCompletionOverTLS(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(api.Listing[api.Summary]{Page: api.Page[api.Summary]{Items: []api.Summary{{SessionID: "s"}}}})
	}))
	t.Cleanup(srv.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600))
	require.Empty(t, atDaemon("session", []string{"tail", "--server", srv.URL}), "nobody vouches for the daemon")
	require.Equal(t, []string{"s"}, atDaemon("session", []string{"tail", "--server", srv.URL, "--ca", ca}))
	require.Equal(t, []string{"s"}, atDaemon("session", []string{"tail", "--server", srv.URL, "--ca=" + ca}))
	t.Setenv("HELIX_CA", ca)
	require.Equal(t, []string{"s"}, atDaemon("session", []string{"tail", "--server", srv.URL}))
	require.Empty(t, atDaemon("session", []string{"tail", "--server", srv.URL, "--cert", ca}), "a certificate needs its key")
}
