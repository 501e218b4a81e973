package embed_test

import (
	"context"
	"fmt"
	"os"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog/jetstream"
)

func Example() {
	dir, _ := os.MkdirTemp("", "helix-data")
	defer os.RemoveAll(dir)

	srv, err := embed.Start(context.Background(), embed.Options{DataDir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Stop()
	nc, _ := srv.Connect()
	defer nc.Close()
	log, _ := jetstream.Open(context.Background(), nc, nil)
	defer log.Close()

	fmt.Println(log.Info().Backend)
	// Output: jetstream
}
