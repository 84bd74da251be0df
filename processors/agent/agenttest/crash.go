package agenttest

// Commit commits what has happened so far: a later Crash does not lose it. New and Advance commit, too.
func (s *Agent) Commit() {
	s.tb.Helper()
	s.work()
	s.committed = s.driver.Snapshot()
}

// Crash kills the agent and starts it again. What was not committed is lost from the tables, and its records are delivered
// again, see "Crashes" in the package documentation. Open calls of the model and of tools are interrupted and made again. An
// output that is repeated after the crash counts once; the test fails if it differs from the one before.
func (s *Agent) Crash() {
	s.tb.Helper()
	s.work()
	interrupted := s.interrupt(func(*call) bool { return true })
	for _, c := range interrupted {
		s.waiting = append(s.waiting, s.newCall(c.worker, c.record))
	}
	s.crashes++
	s.driver.Crash(s.committed)
	s.work()
}
