package memory_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/eventlog/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	logtest.Run(t, func(t *testing.T) eventlog.Log { return memory.New() })
}
