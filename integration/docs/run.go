package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Run does what a page says, in a folder. It stops at the first block that
// fails, or whose output is another than the page shows.
func Run(page Page, dir string, shell *Shell) error {
	for _, block := range page.Blocks {
		if block.NotRun != "" {
			continue
		}
		if block.File != "" {
			path := filepath.Join(dir, filepath.FromSlash(block.File))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(path, []byte(block.Text), 0o600); err != nil {
				return err
			}
			continue
		}
		for _, c := range block.Commands() {
			text := c.Text
			if block.Language == "sh" { // its first command that fails ends the shell, which tells the code
				text = "trap 'printf \"\\036%d\\036\" $?' EXIT\nset -e\n" + text + "set +e\ntrap - EXIT"
			}
			run := shell.Run
			if block.Stays {
				run = func(text string) (string, error) { return shell.stay(text, c.Output) }
			}
			output, err := run(text)
			if err != nil {
				return fmt.Errorf("%s:%d: %w\n%s%s", page.Name, c.Line, err, c.Text, indent(output))
			}
			if c.Shown && !Matches(c.Output, output) {
				return fmt.Errorf("%s:%d: $ %s\nprinted\n%snot\n%s", page.Name, c.Line, c.Text, indent(output), indent(c.Output))
			}
		}
	}
	return nil
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ") + "\n"
}
