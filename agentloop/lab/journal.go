package lab

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/helixd/helixd/agentloop/lab/result"
	"github.com/helixd/helixd/eventlog"
)

// journal keeps the lanes of sessions in a file, so that a lab that dies does not drive them again.
// The file is lines of JSON: the state that the lanes depend on, then one entry a line. A last line
// that is cut is dropped.
type journal struct {
	file string
	mu   sync.Mutex
	out  *os.File
	done map[string]entry
}

type entry struct {
	Session result.Session `json:"lanes"`
	Seconds float64        `json:"seconds"`
}

type journalHead struct {
	State string `json:"state"`
}

func openJournal(file, state string) (*journal, error) {
	j := &journal{file: file, done: map[string]entry{}}
	if file == "" {
		return j, nil
	}
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	whole := 0 // bytes of the file that are kept
	var head journalHead
	if line, rest, ok := bytes.Cut(text, []byte("\n")); ok && json.Unmarshal(line, &head) == nil && head.State == state {
		whole = len(line) + 1
		for len(rest) > 0 {
			var e entry
			line, after, ok := bytes.Cut(rest, []byte("\n"))
			if !ok || json.Unmarshal(line, &e) != nil {
				break
			}
			j.done[e.Session.ID], rest = e, after
			whole += len(line) + 1
		}
	}
	if j.out, err = os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, err
	}
	if err = j.out.Truncate(int64(whole)); err == nil {
		_, err = j.out.Seek(int64(whole), 0)
	}
	if err == nil && whole == 0 {
		err = j.write(journalHead{state})
	}
	if err != nil {
		j.out.Close()
		return nil, fmt.Errorf("the lab's journal %s: %w", file, err)
	}
	return j, nil
}

func (j *journal) get(session string) (entry, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e, ok := j.done[session]
	return e, ok
}

func (j *journal) put(e entry) error {
	if j.out == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.write(e)
}

func (j *journal) write(v any) error {
	line, err := eventlog.Marshal(v)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(j.out, len(line)+1)
	_, _ = w.Write(line) // Flush has the error
	_ = w.WriteByte('\n')
	return w.Flush()
}

// close removes the file of a lab that has ended.
func (j *journal) close(ended bool) error {
	if j.out == nil {
		return nil
	}
	err := j.out.Close()
	if ended {
		err = errors.Join(err, os.Remove(j.file))
	}
	return err
}
