package topics

// The rules of the wire format, and the tests that pin them:
//
//	names, agent prefix (1.0, 7.1)            TestEveryTopicBeginsWithTheAgentsName, TestAgentNamesAreTakenAsTheyAre
//	creation, partitions, retention (1.0)     TestEnsure..., TestNewTopicsTakeTheCountOfThoseThatExist, TestLoopKeeps...
//	field order, nulls, compact (1.0.1)       TestGoldenRecordsComeBackByteForByte, TestAbsentFieldsAreWrittenAsNull
//	doubles (1.0.1)                           TestDoublesArePrintedAsJavaDoes, TestDoublesComeBack
//	free-form values (1.0.1, pass here)       TestFreeFormValuesPassByteForByte
//	escapes (1.0.1)                           TestTextIsNotEscapedBeyondNeed
//	unknown and absent fields (1.0.2)         TestNamesAreCaseSensitive..., TestAbsentAndNullFieldsAreZero
//	coercions (1.0.2)                         TestScalarsAreConverted
//	rejections (1.0.2)                        TestWrongTypesArePoison, TestWhatIsNoRecordIsPoison
//	text after the first value (1.0.2)        TestWhatFollowsTheFirstValueIsIgnored
//	legacy aliases (1.0.2, 1.4)               TestLegacyNamesAreReadAndTheLaterWins
//	result is an object (1.0.5, D-02)         TestResultThatIsNoObjectIsWrapped
//	message-output omits nulls (1.9, R27)     TestOutputLeavesNullFieldsOut
//	reply-to verbatim (1.10)                  TestRouteKeepsItsBytes, TestRouteTTLIsTheRetentionOfReplyTo
//	think-dlq in two shapes (1.16, R29)       TestThinkFailureIsReadInBothShapes
//	camelCase (D-03, R21)                     TestCamelCaseThinkResponsesAreRead, TestThinkResponseOfNothingIsPoison
//	null elements (D-02, R22)                 TestNullToolUsesAreLeftOutAndTheirPlacesKept, TestSpliceJoinsAndLeavesNullsOut
//	structured content (D-44)                 TestTextOfContent
//	echo by value (R21)                       TestValuesAreComparedByValue, TestDigestTellsMessagesApart...
