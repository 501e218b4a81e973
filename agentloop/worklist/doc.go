// Package worklist shares work among the nodes of one log: it keeps the list of session trees that
// may have work, and announces which nodes live and which trees they drive.
//
// The list is the stream HELIX_RUNS. A tree that is given work has a message
// on helix.runs.<agent type>.<session>, stored before the work is appended to
// the log and deleted when the tree is idle. There is no consumer: no node
// has to acknowledge, to send a heartbeat for each run, or to wait for a time-out, and
// there is no consumer's leader whose death would deliver healthy runs again.
// A node reads the list when it starts, when another node dies or leaves, when a node
// asks for it, and every scanEvery in case one of these was missed.
//
// Nodes know of each other by core NATS. Each announces in every beat that it lives,
// which agents it hosts, and whether it drains; a node that is silent and does not
// answer either is dead. Of the trees on the list that no node holds, each live
// node that hosts the agent drives its share: all of them rank a tree's
// candidates alike. If they disagree for a moment, two nodes claim a tree, and the
// log's order decides; or none does, until the list is read again.
//
// None of this is needed for safety. A live node that others take for dead
// loses its runs to a claim that fences it.
package worklist
