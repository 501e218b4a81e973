// Package docs runs the commands of the documentation, so that what a page
// says is what happens.
//
// A page is Markdown. Its fenced blocks are taken in their order:
//
//   - sh: commands for one shell, which all blocks of the page share. The page
//     fails with the first one that fails.
//   - console: lines that begin with "$ " are commands for the same shell, and
//     what follows each is its output. In it "…" stands for any text, and ids,
//     times and durations may differ.
//   - any language followed by a file's name (```yaml helix.yaml): a file of
//     that name in the page's folder.
//
// Other blocks are to be read only. A block after <!-- not run: why --> is not
// run either, and counted. A console block after <!-- in another terminal --> has
// commands that go on, such as a daemon: the page goes on when they have printed
// what it shows.
//
// Each page has its own folder with nothing in it, and where the system
// lets it its own network, so that the ports it names are free. What its
// shell started ends with it.
package docs
