// Package objects keeps the files of workspaces on NATS JetStream, so that they
// follow their session to any node and fork with it.
//
// # Where things lie
//
// All is in the stream HELIX_WORKSPACES, T being a session tree's root and S a
// session, encoded as in the log:
//
//	helix.work.<T>.part.<hash>.<i>  a content, in parts of 128 KiB
//	helix.work.<T>.head.<S>         which manifest is S's now
//	helix.work.<T>.snap.<hash>      a manifest that is kept: a snapshot
//	helix.work.<T>.tree             there may be something of T
//
// Contents are addressed by their SHA-256, within a tree and never across
// trees, so that a tree can be erased. A manifest is a content, too: the names
// of all files with what they are ([filetree.Tree]). A change stores what is
// new, then the manifest, then the head, if that is still the one that was
// read: otherwise it is done again with the newer manifest. So each change is
// whole, of two writers to one file the last one wins, and no other file is
// lost. When a change returns, all of it is acknowledged by the stream, which
// is as durable as the log on the same servers.
//
// A snapshot costs one small message; files that did not change are not stored
// again. What the snapshots of a tree keep is bounded ([filetree.MaxKept]): each
// may be a checkpoint's, so none is dropped, and the next one fails.
//
// A node that has lost a session, and has not noticed, changes the workspace
// beside the new owner until it does: no file is damaged, but one of the two has
// written it last.
//
// # Why not an object store of JetStream's
//
// It replaces an object by a purge of the old one, and purged bytes stay in the
// servers' files, where nothing finds them any more. It has no manifest either:
// a folder would be moved file by file. Here nothing is ever replaced: what is
// needed no more is overwritten, message by message.
//
// # Garbage
//
// Contents that neither a head nor a snapshot has are overwritten by [Provider.Collect], an
// hour after they were stored or later: a change that is under way may need them. A
// change relies on a content that is there already only if the manifest has it
// that it replaces; so nothing that it needs can go meanwhile. Until then files
// that are rewritten often take more room than the workspace may have.
//
// # Removal
//
// An empty head says to writers that the workspace is gone. Then
// every message is overwritten, that one as the last of its heads, with a pause
// as long as it took: a large workspace takes minutes, and a removal that broke
// off continues when it is called again. On more than one replica the servers' own
// logs keep bytes until they compact, which nobody here sees: a message on
// helix.workgone.<T> remembers that, and Remove is [workspace.ErrPending], for good.
//
// # Backups
//
// [Copy] yields the workspaces of session trees for a backup of helixd, and [Provider.Fill]
// stores them in another stream. Contents carry their hash, and are checked whenever they
// are read.
package objects
