package maintenance

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/helixd/helixd/integration/testkit"
)

func TestMain(m *testing.M) {
	testkit.AtOnce(4) // most of it is waiting for the disk
	goleak.VerifyTestMain(testkit.InMemory(m))
}
