package blocks

import "os"

// JournalFile is the name of the journal in the data folder.
const JournalFile = journalFile

// Journal is what the file contains.
type Journal = journal

// RedoIn overwrites again what a journal names in a block.
func RedoIn(f *os.File, j *Journal) error { return j.redo(f) }

// Places returns where the messages are that a scrubber looks for.
func Places(w *Scrubber, block []byte) []Place { return w.places(block) }
