package daemon

import (
	"os"
	"testing"

	"github.com/helixd/helixd/integration/testkit"
)

func TestMain(m *testing.M) {
	testkit.AtOnce(8)
	os.Exit(testkit.InMemory(m).Run())
}
