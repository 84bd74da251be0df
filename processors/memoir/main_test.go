package memoir

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/testing/leaktest"
	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	_ "github.com/turntable-streams/turntable/internal/testing/wirecheck" // validates what graphs write
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testbroker.Main(m), leaktest.Libraries()...) }
