package live

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/helixd/helixd/integration/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testkit.InMemory(m)) }
