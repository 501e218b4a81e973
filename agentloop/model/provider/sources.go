package provider

import "github.com/helixd/helixd/agentloop/model"

// Sources are what an answer cites: each once, after the text that cites it.
type Sources struct {
	known   map[string]bool
	waiting []model.Source
}

// Add adds a source unless it has no key, or the key of another one.
func (s *Sources) Add(key string, source model.Source) {
	if key == "" || s.known[key] {
		return
	}
	if s.known == nil {
		s.known = make(map[string]bool)
	}
	s.known[key] = true
	s.waiting = append(s.waiting, source)
}

// Flush emits what was added since the last Flush.
func (s *Sources) Flush(emit func(model.Event) error) error {
	for _, source := range s.waiting {
		if err := emit(source); err != nil {
			return err
		}
	}
	s.waiting = nil
	return nil
}
