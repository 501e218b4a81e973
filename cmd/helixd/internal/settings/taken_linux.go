package settings

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// listenerOn returns the process that listens on a TCP port, if this process may see it.
func listenerOn(port string) (name, pid string) {
	n, err := strconv.Atoi(port)
	if err != nil {
		return "", ""
	}
	sockets := map[string]bool{} // what the descriptor of a listener links to
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(table)
		if err != nil {
			continue
		}
		for rows := bufio.NewScanner(f); rows.Scan(); {
			const listening = "0A"
			row := strings.Fields(rows.Text()) // sl, local address, remote address, state, …, inode
			if len(row) > 9 && row[3] == listening && strings.HasSuffix(row[1], fmt.Sprintf(":%04X", n)) {
				sockets["socket:["+row[9]+"]"] = true
			}
		}
		f.Close()
	}
	open, _ := filepath.Glob("/proc/[0-9]*/fd/*") // those of processes that it may see
	for _, link := range open {
		if target, err := os.Readlink(link); err == nil && sockets[target] {
			pid = strings.Split(link, "/")[2]
			command, _ := os.ReadFile("/proc/" + pid + "/comm") // it may have ended
			return strings.TrimSpace(string(command)), pid
		}
	}
	return "", ""
}
