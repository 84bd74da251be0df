// Package kill has the test binary run again as child processes, which tests start, kill, pause and stop while clients work.
//
// TestMain names what a child may be:
//
//	func TestMain(m *testing.M) {
//		kill.Main(kill.Programs{"turns": kill.Of(runTurns)})
//		goleak.VerifyTestMain(testbroker.Main(m), leaktest.Libraries()...)
//	}
//
// and a test starts one with its configuration:
//
//	p := kill.Start(t, "turns", turns{Agent: agent, Brokers: brokers})
//
// [Loop] is the test in which processes are killed again and again. If a test fails, what its processes logged is printed,
// and what their goroutines do.
package kill
