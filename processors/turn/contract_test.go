package turn

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// contract names the test of every rule of the wire behavior. The first groups are cases of FlightDeck that concern this
// processor, by FlightDeck's names; where this package decides differently, the decision follows in parentheses. The last
// group has the rules that no such case covers.
var contract = []struct{ rule, test string }{
	// Messages
	{"memoirContextIsNull", "TestFirstMessageIsEnrichedWithAnEmptyHistory"},
	{"sessionHistoryStillWorks", "TestHistoryEndsWithTheLastAnswer"},
	{"outputKeyPreserved", "TestTurnRunsThroughItsTopics"},

	// Aggregation of results
	{"singleTool_emitsOnFirstResult (held until its call)", "TestEarlyResultsAreHeldForTheirCall"},
	{"threeTools_emitsAfterAllThree (no completion by count)", "TestTotalToolsOfAResultIsNotTrusted"},
	{"emittedAccumulator_containsAllToolNames", "TestLastResultCompletesTheStep"},
	{"seeded_emitsWhenAllExpectedArrive", "TestLastResultCompletesTheStep"},
	{"asyncTimeout_synthesisesErrorForMissing", "TestToolTimeoutGivesOpenCallsErrorResults"},
	{"lateDuplicate_isIgnored (dead-lettered)", "TestLateAndForeignResultsAreDeadLettered"},
	{"nextTurn_afterCompletion_proceeds", "TestALaterTurnMayUseAnIDAgain"},
	{"sessionIsolation", "TestTurnRunsThroughItsTopics"},
	{"outputKey_isSessionId", "TestTurnRunsThroughItsTopics"},
	{"isComplete_countFallback_true (no completion by count)", "TestTotalToolsOfAResultIsNotTrusted"},
	{"isComplete_countFallback_false", "TestTotalToolsOfAResultIsNotTrusted"},
	{"isComplete_expectedSet", "TestLastResultCompletesTheStep"},
	{"isComplete_false_alreadyEmitted", "TestSecondResultOfACallChangesNothing"},

	// End of a turn
	{"endTurn_noTools_isForwarded", "TestAnswerEndsTheTurn"},
	{"notEndTurn_isDropped (the step waits on)", "TestResponseWithoutToolsAndEndIsNotAnAnswer"},
	{"endTurn_withToolCalls_isDropped", "TestEndTurnWithToolsDoesNotEndTheTurn"},
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

	// Enrichment
	{"firstMessage_noContext_emptyHistory", "TestFirstMessageIsEnrichedWithAnEmptyHistory"},
	{"messageWithThinkResponse_includesHistory", "TestHistoryEndsWithTheLastAnswer"},
	{"latestInput_isNotInHistory", "TestHistoryEndsWithTheLastAnswer"},
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
	{"costFlowsFromThinkResponseTotalSessionCost", "TestHistoryEndsWithTheLastAnswer"},

	// The tool message
	{"completedAccumulator_producesOneMessage", "TestLastResultCompletesTheStep"},
	{"outputKey_isSessionId", "TestTurnRunsThroughItsTopics"},
	{"agentMessage_roleIsTool", "TestLastResultCompletesTheStep"},
	{"agentMessage_sessionAndUserPreserved", "TestLastResultCompletesTheStep"},
	{"agentMessage_contentContainsToolNames", "TestLastResultCompletesTheStep"},
	{"agentMessage_contentHasRequiredFields", "TestLastResultCompletesTheStep"},
	{"metadata_toolCount", "TestLastResultCompletesTheStep"},
	{"metadata_source", "TestLastResultCompletesTheStep"},
	{"metadata_toolResultsPresent", "TestLastResultCompletesTheStep"},
	{"emptyResults_filtered (no step has none)", "TestStepWithoutUsableItemsCompletesImmediately"},
	{"nullAccumulator_filtered (tool-use-all-complete is no input)", "TestTurnRunsThroughItsTopics"},
	{"buildContentList_null (a null result is {})", "TestNullResultIsAnEmptyObject"},
	{"buildContentList_empty", "TestStepWithoutUsableItemsCompletesImmediately"},
	{"buildContentList_single", "TestToolErrorEndsItsCallImmediately"},
	{"buildContentList_multiple", "TestLastResultCompletesTheStep"},
	{"buildMetadata_requiredKeys", "TestLastResultCompletesTheStep"},
	{"buildMetadata_toolCount", "TestLastResultCompletesTheStep"},
	{"toMessageInput_role", "TestLastResultCompletesTheStep"},
	{"toMessageInput_ids", "TestLastResultCompletesTheStep"},
	{"toMessageInput_contentNonEmpty", "TestLastResultCompletesTheStep"},

	// Rules without such a case
	{"bad items are answered", "TestUnusableItemsGetErrorResultsImmediately"},
	{"a repeated id is one call", "TestUnusableItemsGetErrorResultsImmediately"},
	{"replay against the row", "TestCrashesRepeatOutputsAndChangeNone"},
	{"bad bytes stop nothing", "TestBadRecordsOnEveryInputDoNotStopTheGroup"},
	{"think deadline", "TestThinkDeadlineEndsTheTurn"},
	{"state by turn", "TestAnyInterleavingWithRepeatsGivesTheSameOutputs"},
	{"late callback", "TestLateAndForeignResultsAreDeadLettered"},
	{"reused ids", "TestALaterTurnMayUseAnIDAgain"},
	{"a tool's error completes its call", "TestToolErrorEndsItsCallImmediately"},
	{"tombstone of a used route", "TestTombstoneBelongsToAUsedRouteFirst"},
	{"route and message in any order", "TestOutputCarriesTheRouteVerbatim"},
	{"routes expire", "TestRoutesExpireByTimer"},
	{"one turn at a time", "TestMessagesWaitForTheirTurnInOrder"},
	{"repeats of responses", "TestResponseCountsOnlyForAStepThatWaits"},
	{"sizes", "TestAnOrdinaryLargeResultReachesTheModel"},
	{"text blocks", "TestAnswerContent"},
	{"newer rows", "TestRowOfANewerFormatIsRefusedByName"},
	{"order of refusal", "TestHeldResultsGoFirstWhereTheRowIsFull"},
	{"cause ids", "TestTheSameHeaderIDIsOneMessage"},
	{"request ids", "TestTheSameRequestIDIsOneMessageForADay"},
	{"echo", "TestEchoSelectsTheStepThatAResponseAnswers"},
	{"equals both", "TestRepeatedQuestionIsDistinguishedByItsHistory"},
	{"error leaves the history", "TestErrorAfterToolsKeepsTheCostAndNotTheHistory"},
	{"tombstone", "TestTombstoneClearsTheConversation"},
	{"queue", "TestMessageOverTheQueueLimitIsAnsweredImmediately"},
	{"reject", "TestRejectPolicyAnswersBusy"},
	{"foreign tool message", "TestForeignToolMessageIsDeadLettered"},
	{"held results", "TestEarlyResultsAreHeldForTheirCall"},
	{"error output", "TestThinkDeadlineEndsTheTurn"},
	{"named routes", "TestNamedRouteServesItsRequest"},
	{"unnamed routes", "TestUnnamedRouteBindsToTheOldestMessageThatIsNotOlder"},
	{"think failure", "TestThinkFailureEndsTheTurn"},
	{"cancel", "TestCancelEndsTheNamedRequest"},
	{"purge", "TestPurgeEndsTheSession"},
	{"idle", "TestIdleSessionsArePurged"},
	{"approvals", "TestCallThatNeedsApprovalIsRequestedAndTheOthersRun"},
	{"approved arguments", "TestApprovalThatDoesNotCoverWhatWouldRunIsRefused"},
	{"refused calls", "TestModelIsToldWhyACallDidNotRun"},
	{"edited calls", "TestEditedArgumentsRunAndTheConversationShowsThem"},
	{"clocks of gates", "TestUngatedCallsKeepTheClockOfTheirStep"},
	{"gates without outcomes", "TestGateWithoutAnOutcomeEndsFiveMinutesAfterItsDeadline"},
	{"outcomes in any order", "TestOutcomeThatIsReadBeforeItsCallIsHeld"},
	{"gates of others", "TestStepEndsAfterItsTimeoutWithoutGates"},
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
