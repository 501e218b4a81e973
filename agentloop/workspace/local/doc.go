// Package local keeps the files of workspaces in folders of this machine, and
// runs commands in them.
//
// # Storage layout
//
//	<dir>/host                          names this machine in refs
//	<dir>/trees/<T>/root                the id of the session tree's root
//	<dir>/trees/<T>/files/<S>/          a session's files
//	<dir>/trees/<T>/files/<S>/.helix/   files that are being written, and TMPDIR
//	<dir>/trees/<T>/contents/<hash>     what snapshots consist of, once a tree
//	<dir>/trees/<T>/snapshots/<hash>    a snapshot: names, and what they are
//
// T and S are hashes of ids: an id may be longer than a name of a file, and
// differ from another in case only. A ref names the machine: on another one
// it is [workspace.ErrElsewhere].
//
// A file is written beside, synced, and renamed: it is there whole or not at
// all, also after a power loss. What commands write is as durable as they make
// it, until a snapshot copies and syncs it. Snapshots keep files, symbolic links
// as they are, folders and permissions; sockets, pipes and devices, names that
// are not UTF-8, and files of other users are left out. What the snapshots of
// a tree keep is bounded ([filetree.MaxKept]): each may be a checkpoint's, so
// none is dropped, and the next one fails. A fork links a snapshot's contents, and
// needs the first tree no more.
//
// A workspace has at most 100,000 files and folders, 200 of them within each
// other, and 16 MiB of paths and of what links say: this process looks at all of
// it while commands make more. One that has more is [workspace.ErrQuota] until
// something is removed.
//
// Every access of this process goes through [os.Root]: neither "..", nor a
// symbolic link, nor one that is exchanged at the wrong moment leads out. A
// file of another user than the workspace's is not read: it may be
// a hard link to a file that is not the agent's.
//
// # Commands
//
// /bin/sh -c, on Linux only. A command gets a clean environment, no files of the
// daemon's but its three streams, and limits of time, output, processes and
// bytes; all that it began is dead when it is answered. A process of this
// program's own ([superviseName]) sees to that: it is the first of a namespace
// of processes, which the kernel ends with it, and in which there are new
// namespaces of users and mounts, too. The limits are the command's alone: what
// it begins can't take from the supervisor what that needs to end it. There a
// command
//   - runs as Options.RunAs, without its own rights and without a way to
//     more (no_new_privs, no namespaces of users within its own);
//   - sees the machine read-only, with temporary files, terminals, processes and
//     few devices, and without other workspaces, Options.Hide, /run,
//     and the homes of users;
//   - has its own network with nothing but a loopback interface, unless
//     [workspace.Command].HostNetwork.
//
// Everywhere a filter (seccomp) refuses system calls that commands do not need,
// and in namespaces or not, processes have Options.MaxMemory together: they are
// counted with the processes, and each can't allocate more. Gaps says what of
// this the kernel does not allow.
//
// Where the kernel does not allow that, as in most containers, Isolated is
// false. If this process is root, commands run as another user: the supervisor
// adopts orphans and ends them, but all commands are one user's then, which reads
// and writes any workspace and sees all processes. If not, there is no shell,
// unless Options.Unconfined: a command is of this process's own user then, reads
// its environment and files, can end it and the supervisor, and leave processes
// running.
//
// # What is not confined
//
// Also isolated, a command is a process of this machine: it uses the processor
// like any other, is the first to be ended when memory is short, and reads what its
// user and that user's groups may read outside of what is hidden. With
// HostNetwork it reaches the network, and sockets that have no file. Bytes are counted once a
// second: more can be written meanwhile, and what is removed and still open is
// not counted. A kernel's bug is a way out. For untrusted code, run the
// daemon in a virtual machine or its own container.
//
// A removal unlinks files; what a disk keeps of freed blocks is the file
// system's. Backups of helixd do not have the files: copy dir with any tool.
package local
