package control

import (
	"os"
	"testing"

	"github.com/helixd/helixd/integration/testkit"
)

func TestMain(m *testing.M) {
	testkit.AtOnce(8) // most of it is waiting for an erasure
	os.Exit(testkit.InMemory(m).Run())
}
