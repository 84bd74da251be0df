package turn

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// contract says which test pins which rule of the contract: the counterpart of every case of its sections 7.2 to 7.5
// and 7.8 that speaks of this processor. Where a rule was decided otherwise, the decision stands behind it. Cases about
// memoir (7.2, on) have none here.
var contract = []struct{ rule, test string }{
	// 7.2, without memoir
	{"memoirContextIsNull", "TestFirstMessageIsEnrichedWithAnEmptyHistory"},
	{"sessionHistoryStillWorks", "TestHistoryIsWhatTheLastAnswerLeft"},
	{"outputKeyPreserved", "TestTurnRunsThroughItsTopics"},

	// 7.3, aggregation
	{"singleTool_emitsOnFirstResult (R25: held until its call)", "TestEarlyResultsAreHeldForTheirCall"},
	{"threeTools_emitsAfterAllThree (no completion by count)", "TestTotalToolsOfAResultIsNotTrusted"},
	{"emittedAccumulator_containsAllToolNames", "TestLastResultCompletesTheStep"},
	{"seeded_emitsWhenAllExpectedArrive", "TestLastResultCompletesTheStep"},
	{"asyncTimeout_synthesisesErrorForMissing", "TestToolTimeoutSynthesisesWhatIsMissing"},
	{"lateDuplicate_isIgnored (dead-lettered)", "TestLateAndForeignResultsAreDeadLettered"},
	{"nextTurn_afterCompletion_proceeds", "TestALaterTurnMayUseAnIDAgain"},
	{"sessionIsolation", "TestTurnRunsThroughItsTopics"},
	{"outputKey_isSessionId", "TestTurnRunsThroughItsTopics"},
	{"isComplete_countFallback_true (no completion by count)", "TestTotalToolsOfAResultIsNotTrusted"},
	{"isComplete_countFallback_false", "TestTotalToolsOfAResultIsNotTrusted"},
	{"isComplete_expectedSet", "TestLastResultCompletesTheStep"},
	{"isComplete_false_alreadyEmitted", "TestFirstResultStays"},

	// 7.4, end of turn
	{"endTurn_noTools_isForwarded", "TestAnswerEndsTheTurn"},
	{"notEndTurn_isDropped (the step waits on)", "TestNeitherToolsNorAnEndIsNoAnswer"},
	{"endTurn_withToolCalls_isDropped", "TestEndTurnWithToolsIsNoEnd"},
	{"endTurn_nullToolUses_isForwarded", "TestLegacyAndCamelCaseResponsesAnswer"},
	{"userResponse_fieldMapping", "TestAnswerEndsTheTurn"},
	{"outputKey_isSessionId", "TestTurnRunsThroughItsTopics"},
	{"sourceAgent_defaultsToAgent1", "TestSourceAgentIsTheFirstNamed"},
	{"sourceAgent_fromMetadata", "TestSourceAgentIsTheFirstNamed"},
	{"assembleContent_single", "TestAnswerContent"},
	{"assembleContent_multiple", "TestAnswerContent"},
	{"assembleContent_excludesNonAssistant", "TestAnswerContent"},
	{"assembleContent_null", "TestAnswerContent"},
	{"assembleContent_empty", "TestAnswerContent"},
	{"assembleContent_noAssistantMessages", "TestAnswerContent"},
	{"assembleContent_blankContentExcluded", "TestAnswerContent"},
	{"toUserResponse_contentFromAssistant", "TestAnswerEndsTheTurn"},
	{"toUserResponse_noMessages_emptyContent", "TestAnswerContent"},
	{"toUserResponse_messagesSchema_extractsContent", "TestLegacyAndCamelCaseResponsesAnswer"},
	{"totalSessionCost_flowsToUserResponse", "TestAnswerEndsTheTurn"},
	{"totalSessionCost_null_flowsAsNull", "TestNullCostFlowsThrough"},
	{"thinkTokens_flowToUserResponse", "TestAnswerEndsTheTurn"},

	// 7.5, enrichment
	{"firstMessage_noContext_emptyHistory", "TestFirstMessageIsEnrichedWithAnEmptyHistory"},
	{"messageWithThinkResponse_includesHistory", "TestHistoryIsWhatTheLastAnswerLeft"},
	{"latestInput_isNotInHistory", "TestHistoryIsWhatTheLastAnswerLeft"},
	{"outputKey_isSessionId", "TestTurnRunsThroughItsTopics"},
	{"userId_fromMessage", "TestUserIsTheMessagesElseTheLastResponses"},
	{"userId_fallsBackToThinkResponse", "TestUserIsTheMessagesElseTheLastResponses"},
	{"userId_nullWhenNoSource", "TestUserIsTheMessagesElseTheLastResponses"},
	{"sessionIsolation", "TestTurnRunsThroughItsTopics"},
	{"enrich_nullThinkResponse_emptyHistory", "TestFirstMessageIsEnrichedWithAnEmptyHistory"},
	{"enrich_thinkResponseWithNullFields", "TestHistoryPassesThroughByteForByte"},
	{"enrich_historyReconstructed", "TestHistoryPassesThroughByteForByte"},
	{"enrich_userIdFromMessage", "TestUserIsTheMessagesElseTheLastResponses"},
	{"enrich_userIdFallback", "TestUserIsTheMessagesElseTheLastResponses"},
	{"costFlowsFromThinkResponseTotalSessionCost", "TestHistoryIsWhatTheLastAnswerLeft"},

	// 7.8, the tool message
	{"completedAccumulator_producesOneMessage", "TestLastResultCompletesTheStep"},
	{"outputKey_isSessionId", "TestTurnRunsThroughItsTopics"},
	{"agentMessage_roleIsTool", "TestLastResultCompletesTheStep"},
	{"agentMessage_sessionAndUserPreserved", "TestLastResultCompletesTheStep"},
	{"agentMessage_contentContainsToolNames", "TestLastResultCompletesTheStep"},
	{"agentMessage_contentHasRequiredFields", "TestLastResultCompletesTheStep"},
	{"metadata_toolCount", "TestLastResultCompletesTheStep"},
	{"metadata_source", "TestLastResultCompletesTheStep"},
	{"metadata_toolResultsPresent", "TestLastResultCompletesTheStep"},
	{"emptyResults_filtered (R26: no step has none)", "TestNoGoodItemCompletesAtOnce"},
	{"nullAccumulator_filtered (tool-use-all-complete is no input)", "TestTurnRunsThroughItsTopics"},
	{"buildContentList_null (a null result is {})", "TestNullResultIsAnEmptyObject"},
	{"buildContentList_empty", "TestNoGoodItemCompletesAtOnce"},
	{"buildContentList_single", "TestToolErrorCompletesItsCallAtOnce"},
	{"buildContentList_multiple", "TestLastResultCompletesTheStep"},
	{"buildMetadata_requiredKeys", "TestLastResultCompletesTheStep"},
	{"buildMetadata_toolCount", "TestLastResultCompletesTheStep"},
	{"toMessageInput_role", "TestLastResultCompletesTheStep"},
	{"toMessageInput_ids", "TestLastResultCompletesTheStep"},
	{"toMessageInput_contentNonEmpty", "TestLastResultCompletesTheStep"},

	// Decisions and defects that have no case there
	{"2.2 D-10, D-16, R26: bad items are answered", "TestBadItemsAreAnsweredAtOnce"},
	{"2.2 R26: a repeated id is one call", "TestBadItemsAreAnsweredAtOnce"},
	{"D-01: replay against the row", "TestCrashesRepeatOutputsAndChangeNone"},
	{"D-02: bad bytes stop nothing", "TestBadRecordsOnEveryInputStopNothing"},
	{"D-04: think deadline", "TestThinkDeadlineEndsTheTurn"},
	{"D-09, D-12, D-13: state by turn", "TestAnyInterleavingWithRepeatsGivesTheSameOutputs"},
	{"D-11: late callback", "TestLateAndForeignResultsAreDeadLettered"},
	{"D-14: reused ids", "TestALaterTurnMayUseAnIDAgain"},
	{"D-16: a tool's error completes its call", "TestToolErrorCompletesItsCallAtOnce"},
	{"D-17: tombstone of a used route", "TestTombstoneBelongsToAUsedRouteFirst"},
	{"D-18: route and message in any order", "TestOutputCarriesTheRouteVerbatim"},
	{"D-19: routes expire", "TestRoutesExpireByTimer"},
	{"D-28: one turn at a time", "TestMessagesWaitForTheirTurnInOrder"},
	{"D-32: repeats of responses", "TestResponseCountsOnlyForAStepThatWaits"},
	{"D-35: sizes", "TestAnOrdinaryLargeResultReachesTheModel"},
	{"D-44: text blocks", "TestAnswerContent"},
	{"R10: newer rows", "TestRowOfANewerFormatIsRefusedByName"},
	{"R11: order of refusal", "TestHeldResultsGoFirstWhereTheRowIsFull"},
	{"R20: cause ids", "TestTheSameHeaderIDIsOneMessage"},
	{"R20: request ids", "TestTheSameRequestIDIsOneMessageForADay"},
	{"R21: echo", "TestEchoDecidesWhichStepIsMeant"},
	{"R21: equals both", "TestTheSameQuestionTwiceIsToldApartByTheHistory"},
	{"R22: error leaves the history", "TestErrorAfterToolsKeepsTheCostAndNotTheHistory"},
	{"R22: tombstone", "TestTombstoneClearsTheConversation"},
	{"R23: queue", "TestQueueLimitAnswersAtOnce"},
	{"R23: reject", "TestRejectPolicyAnswersBusy"},
	{"R24: foreign tool message", "TestForeignToolMessageIsDeadLettered"},
	{"R25: held results", "TestEarlyResultsAreHeldForTheirCall"},
	{"R27: error output", "TestThinkDeadlineEndsTheTurn"},
	{"R28: named routes", "TestNamedRouteServesItsRequest"},
	{"R28: unnamed routes", "TestUnnamedRouteBindsToTheOldestMessageThatIsNotOlder"},
	{"R29: think failure", "TestThinkFailureEndsTheTurn"},
	{"R29: cancel", "TestCancelEndsTheNamedRequest"},
	{"R29: purge", "TestPurgeEndsTheSession"},
	{"R29: idle", "TestIdleSessionsArePurged"},
}

func TestEveryRuleHasItsTest(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	tests := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range declared.FindAllSubmatch(text, -1) {
			tests[string(m[1])] = true
		}
	}
	for _, c := range contract {
		require.True(t, tests[c.test], "%s: %s", c.rule, c.test)
	}
}
