package embed

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/helixd/helixd/embed/internal/datadir"
	"github.com/helixd/helixd/eventlog/version"
)

// formatFile holds the format of a data folder, see version.Format.
const formatFile = "format"

// folderFormat is the content of formatFile.
type folderFormat struct {
	Format int    `json:"format"`
	Helixd string `json:"helixd"` // the version that has set the number
}

// CheckFormat refuses a data folder of a later format, as [Start] does: for a caller that
// keeps files of its own beside it. There need be no folder yet.
func CheckFormat(dir string) error {
	_, err := checkFormat(dir)
	return err
}

// checkFormat refuses a data folder of a later format. It reports whether the folder has
// yet to learn this program's.
func checkFormat(dir string) (older bool, err error) {
	path := filepath.Join(dir, formatFile)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("embed: data dir: %w", err)
	}
	var f folderFormat
	if err := json.Unmarshal(raw, &f); err != nil || f.Format < 1 {
		return false, fmt.Errorf("embed: data dir: %s is damaged, so the folder may be of a later version of helixd: if this version or an earlier one has written it, remove the file", path)
	}
	if err := version.Check(dir, f.Format, f.Helixd); err != nil {
		return false, fmt.Errorf("embed: data dir: %w", err)
	}
	return f.Format < version.Format, nil
}

// noteFormat stores this program's format in the folder, as a whole and to the disk.
func noteFormat(dir string) error {
	raw, err := json.Marshal(folderFormat{version.Format, version.Current()})
	if err == nil {
		err = datadir.Replace(filepath.Join(dir, formatFile), append(raw, '\n'))
	}
	if err != nil {
		return fmt.Errorf("embed: data dir: %w", err)
	}
	return nil
}
