package embed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/helixd/helixd/embed/internal/blocks"
	"github.com/helixd/helixd/embed/internal/datadir"
)

// movedFile, in a data folder, says that another deployment has the data since.
const movedFile = "helixd.moved"

// ErrMoved: another deployment has taken over the data of the folder, which may therefore
// not be written any more.
var ErrMoved = errors.New("embed: another deployment has the data of this folder")

// ErrInUse: another server uses the data folder.
var ErrInUse = datadir.ErrInUse

// SetMoved marks a data folder as moved, with a text for [Moved] whose first line says
// where to, or removes the mark if the text is empty. It returns when that is on the
// disk. From then on [Start] refuses the folder, unless Options.KeepFormat is set.
func SetMoved(dir string, text []byte) error {
	path := filepath.Join(dir, movedFile)
	var err error
	if len(text) > 0 {
		err = datadir.Replace(path, text)
	} else if err = os.Remove(path); err == nil {
		err = datadir.Sync(dir)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("embed: data dir: %w", err)
	}
	return nil
}

// Moved returns the text of a data folder's mark, nil if it has none.
func Moved(dir string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(dir, movedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("embed: data dir: %w", err)
	}
	return text, nil
}

// Created returns when a stream of a data folder was created. That is part of its
// settings, and no change of them changes it.
func Created(dir, stream string) (time.Time, error) {
	var settings struct {
		Created time.Time `json:"created"`
	}
	text, err := os.ReadFile(filepath.Join(dir, "jetstream", blocks.Account, "streams", stream, "meta.inf"))
	if err == nil {
		err = json.Unmarshal(text, &settings)
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("embed: data dir: stream %s: %w", stream, err)
	}
	return settings.Created, nil
}

func (o Options) checkMoved() error {
	if o.KeepFormat {
		return nil
	}
	text, err := Moved(o.DataDir)
	if err == nil && text != nil {
		first, _, _ := bytes.Cut(text, []byte("\n"))
		err = fmt.Errorf("%w: %s: %s", ErrMoved, o.DataDir, first)
	}
	return err
}
