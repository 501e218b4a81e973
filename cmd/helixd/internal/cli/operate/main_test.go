package operate

import (
	"os"
	"testing"

	"github.com/helixd/helixd/integration/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.InMemory(m).Run()) }
