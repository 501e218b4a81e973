// Package memory gives agents memories that outlive a conversation: of a user,
// of an agent, or of one session tree.
//
// # What is promised
//
// A memory is a record in the log of its [eventlog.MemoryScope]: what [Manager.Save]
// has returned is as durable as the log, can be read again by any node, goes
// into backups, and is gone with all its bytes after [Manager.Erase]. Save needs
// neither the index nor the embedder:
//
//	Save ──MemorySaved──> log ──> index: found by its words at once
//	  └─ Executor ─ Embedder ──MemoryEmbedded──> log ──> index: found by its meaning
//	                   │ fails, or the process dies
//	                   └─> stays pending until ProcessUnembedded
//
// A draft with a key is saved once, however often it is tried. A vector that is
// computed twice, by two nodes, is written twice and counts once. An erasure
// is not undone by a vector that comes late, and what was forgotten or erased
// before its turn is sent to no embedder. The tool save_memory waits for a log
// that takes nothing for now, as its run does.
//
// Nothing is saved but by a call of Save, an agent's by its tool: no model is
// asked what of a conversation is worth remembering.
//
// # How memories are found
//
// [Manager.Search] asks the index for two rankings, by words (BM25) and by
// meaning (the cosine of vectors), and joins them by reciprocal rank fusion:
// each adds weight/(60+rank), [WordsWeight] and [MeaningWeight], and the sum is
// given as a share of what the first of all rankings would have. Where two fit
// the same, the newer one is first. What is near by meaning alone must have a
// cosine of at least Options.MinCosine. An embedder that does not answer within
// [QuestionTimeout] costs the ranking by meaning, not the answer: Found.WordsOnly is set.
// Memories that were forgotten or erased, and that an index which lags still has, are left
// out, also of listings.
//
// [Manager.Recall] is stricter, since the user did not ask for memories: a memory that is found by words
// must share with the question a word that carries its subject (not "the",
// not "what"; see projector/readmodel/words), or a form of it. Such common words are
// known for English only, and in scripts without spaces each character
// counts: in other languages a common word is enough for a match.
//
// # Ownership
//
// The log is the truth. The index can be lost. The manager holds nothing but
// what its executor has under way, and that ends with [Manager.Shutdown].
// Nothing is logged but a scope's kind and a memory's id.
package memory
