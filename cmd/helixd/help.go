package main

import (
	"strings"

	"github.com/alecthomas/kong"

	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/eventlog/version"
)

// helpWidth is the width of help texts, in characters.
const helpWidth = 100

const description = `The durable home of AI-agent sessions.

Exit codes: 0: success; 1: a failure, problems that doctor found, or regressions that lab run found; 2: an invalid command line, damage that verify found, doctor could not examine the deployment, or lab run could not judge; 3 and 4: a run that helixd run showed waits, or was interrupted.

Flags beat the environment (HELIX_LISTEN is the key listen), which beats the file, which beats defaults.`

// groups are how commands are listed.
var groups = []kong.Group{
	{Key: "run", Title: "Start helixd:"},
	{Key: "talk", Title: "Run agents:"},
	{Key: "look", Title: "Inspect sessions:"},
	{Key: "change", Title: "Change sessions:"},
	{Key: "memories", Title: "Memories:"},
	{Key: "lab", Title: "Try changed agents on recorded sessions:"},
	{Key: "care", Title: "Operate:"},
}

// examples are shown by each command's --help; they are by its path.
var examples = map[string][]string{
	"dev":               {"helixd dev", "helixd dev --config helix.yaml"},
	"serve":             {"helixd serve --config helix.yaml", "helixd serve --config helix.yaml --listen 0.0.0.0:8080 --log-format json"},
	"run":               {"helixd run weather 'What is the weather like?'", "helixd run janitor 'Tidy up.' --session tidy-1", "helixd run planner - --json"},
	"chat":              {"helixd chat weather", "helixd chat --session tidy-1"},
	"say":               {"helixd say my-session 'And tomorrow?' --follow"},
	"approve":           {"helixd approve my-session", "helixd approve my-session --call call_0_0 --follow"},
	"deny":              {"helixd deny my-session --reason 'Too much.'"},
	"answer":            {`helixd answer my-session '{"lat":55.7,"lon":12.6}'`, "helixd answer my-session --error 'no position'"},
	"resume":            {"helixd resume my-session", "helixd resume my-session --retry"},
	"interrupt":         {"helixd interrupt my-session --reason 'wrong order'"},
	"abort":             {"helixd abort my-session"},
	"tail":              {"helixd tail my-session", "helixd tail my-session@120 --lines"},
	"diff":              {"helixd diff my-session@20..80", "helixd diff my-session@80 what-if@80"},
	"compare":           {"helixd compare my-session what-if", "helixd compare my-session@80 what-if@80 --width 160"},
	"replay":            {"helixd replay my-session --speed 2", "helixd replay my-session@20..80 --speed 0", "helixd replay my-session --verify --config helix.yaml", `helixd replay my-session@42 --live --tool-result 'call_1={"ok":false}'`},
	"sessions":          {"helixd sessions", "helixd sessions --json"},
	"runs":              {"helixd runs"},
	"usage":             {"helixd usage"},
	"search":            {"helixd search weather"},
	"parked":            {"helixd parked"},
	"state":             {"helixd state my-session", "helixd state my-session@120"},
	"records":           {"helixd records my-session --json", "helixd records my-session@120", "helixd records my-session --nats nats://127.0.0.1:4222"},
	"checkpoints":       {"helixd checkpoints my-session"},
	"files":             {"helixd files my-session", "helixd files my-session src"},
	"fork":              {"helixd fork my-session@120 --as what-if", "helixd fork my-session --message-index 3"},
	"rollback":          {"helixd rollback my-session@120", "helixd rollback my-session --checkpoint cpv1-my-session-s1-t1795270539276-01d2ed --yes"},
	"audit":             {"helixd audit my-session", "helixd audit my-session --json"},
	"append":            {"helixd append my-session chunks.ndjson"},
	"export":            {"helixd export my-session"},
	"import":            {"helixd import records.ndjson"},
	"erase":             {"helixd erase my-session --yes"},
	"memories list":     {"helixd memories list --user ada"},
	"memories search":   {"helixd memories search --user ada 'Which tea?'"},
	"memories save":     {"helixd memories save --agent clerk 'Refunds over 100 euros take two signatures.' --tag refunds"},
	"memories forget":   {"helixd memories forget --user ada 5KQ3TYHV7N2MBDJRZE6WXG4SCP"},
	"memories erase":    {"helixd memories erase --user ada --yes"},
	"memories process":  {"helixd memories process"},
	"lab cohort create": {"helixd lab cohort create week.ndjson --since 168h --limit 500 --seed 1 --redact rules.yaml", "helixd lab cohort create failed.ndjson --backup helixd.backup --status failed"},
	"lab run":           {"helixd lab run lab.yaml", "helixd lab run lab.yaml --report report.json --junit report.xml --repeat 3"},
	"lab view":          {"helixd lab view lab.yaml", "helixd lab view lab.yaml --listen 127.0.0.1:9465"},
	"lab watch":         {"helixd lab watch lab.yaml", "helixd lab watch lab.yaml --listen 127.0.0.1:9464"},
	"retain":            {"helixd retain --purge-older-than 72h", "helixd retain --drop-older-than 720h"},
	"backup":            {"helixd backup --out helixd.backup"},
	"restore":           {"helixd restore helixd.backup --data-dir ./new-data", "helixd restore helixd.backup --config node1.yaml"},
	"cluster grow":      {"helixd cluster grow --from ./helix-data --config node1.yaml"},
	"sweep":             {"helixd sweep --dry-run"},
	"verify":            {"helixd verify --data-dir ./helix-data", "helixd verify my-session --nats nats://127.0.0.1:4222"},
	"doctor":            {"helixd doctor --config helix.yaml --config-only", "helixd doctor --server http://127.0.0.1:8080"},
	"healthy":           {"helixd healthy --wait 30s"},
	"reload":            {"helixd reload --server http://127.0.0.1:8080"},
	"size":              {"helixd size --sessions 20000 --tokens 2000 --nodes 3", "helixd size --sessions 500 --followers 3 --json"},
	"config check":      {"helixd config check", "helixd config check node1.yaml --json"},
	"config schema":     {"helixd config schema"},
	"completion":        {"helixd completion bash"},
	"man":               {"helixd man", "helixd man memories list", "helixd man --out man1"},
	"version":           {"helixd version --json"},
}

// newParser reads command lines into c.
func newParser(c *cli, more ...kong.Option) (*kong.Kong, error) {
	k, err := kong.New(c, append([]kong.Option{
		kong.Name("helixd"), kong.Description(description), kong.ExplicitGroups(groups),
		kong.Vars{"version": "helixd " + version.Current()}, source.Sessions,
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: helpWidth}),
	}, more...)...)
	if err != nil {
		return nil, err
	}
	for _, command := range k.Model.Leaves(false) {
		text := "Examples:\n\n  " + strings.Join(examples[command.Path()], "\n  ")
		if command.Detail != "" {
			text = command.Detail + "\n\n" + text
		}
		command.Detail = text
	}
	return k, nil
}
