"""The fields that a gateway passes on to a provider of this wire: of its official library those
that name nothing in an account.

Derived by `tests/support/allow_lists.py`, where it says what is left out and what is added.
"""

from dragoman.codec.allow_list import AllowList
from dragoman.wires.google.keys import camel

__all__ = ["allowed"]

allowed = AllowList(
    """
request: contents=Content generationConfig=GenerationConfig labels model
    safetySettings=SafetySetting serviceTier store systemInstruction=Content toolConfig=ToolConfig
    tools=Tool
Content: parts=Part role
Part: audioMetadata=AudioMetadata audioTranscription=Transcription
    codeExecutionResult=CodeExecutionResult documentMetadata=DocumentMetadata
    executableCode=ExecutableCode fileData=FileData functionCall=FunctionCall
    functionResponse=FunctionResponse inlineData=Blob mediaProcessing
    mediaResolution=PartMediaResolution partMetadata speechMetadata=SpeechMetadata
    spreadsheetMetadata=SpreadsheetMetadata text thought thoughtSignature toolCall=ToolCall
    toolResponse=ToolResponse videoMetadata=VideoMetadata
AudioMetadata: endOffset startOffset
Blob: data displayName mimeType
CodeExecutionResult: id outcome output
DocumentMetadata: contentLayers endPage startPage
ExecutableCode: code id language
FileData: displayName fileUri% mimeType
FunctionCall: args id name partialArgs=PartialArg willContinue
PartialArg: boolValue jsonPath nullValue numberValue stringValue willContinue
FunctionResponse: id name parts=FunctionResponsePart response scheduling willContinue
FunctionResponsePart: audioMetadata=AudioMetadata documentMetadata=DocumentMetadata
    fileData=FileData inlineData=Blob mediaProcessing mediaResolution=PartMediaResolution
    spreadsheetMetadata=SpreadsheetMetadata videoMetadata=VideoMetadata
PartMediaResolution: level numTokens
SpreadsheetMetadata: contentLayers sheetIndex visibleCells
VideoMetadata: contentLayers endOffset fps startOffset
SpeechMetadata: speaker style
ToolCall: args id toolType
ToolResponse: id response toolType
Transcription: endOffset finished languageCode speakerLabel startOffset text words=WordInfo
WordInfo: endOffset startOffset word
GenerationConfig: audioTimestamp audioTranscriptionConfig=AudioTranscriptionConfig candidateCount
    enableAffectiveDialog enableEnhancedCivicAnswers frequencyPenalty logprobs maxOutputTokens
    mediaResolution presencePenalty responseFormat=ResponseFormat responseJsonSchema
    responseLogprobs responseMimeType responseModalities responseSchema seed
    speechConfig=SpeechConfig stopSequences temperature thinkingConfig=ThinkingConfig topK topP
    translationConfig=TranslationConfig
AudioTranscriptionConfig: adaptationPhrases customVocabulary diarization languageAuto=WebSearch
    languageCodes languageHints=LanguageHints mode sourceText wordTimestamp
WebSearch:
LanguageHints: languageCodes
ResponseFormat: audio=AudioResponseFormat image=ImageResponseFormat text=TextResponseFormat
    video=VideoResponseFormat
AudioResponseFormat: bitRate delivery mimeType sampleRate
ImageResponseFormat: aspectRatio delivery imageSize mimeType
TextResponseFormat: mimeType schema
VideoResponseFormat: aspectRatio delivery duration resolution
SpeechConfig: languageCode multiSpeakerVoiceConfig=MultiSpeakerVoiceConfig voiceConfig=VoiceConfig
MultiSpeakerVoiceConfig: speakerVoiceConfigs=SpeakerVoiceConfig
SpeakerVoiceConfig: speaker voiceConfig=VoiceConfig
VoiceConfig: prebuiltVoiceConfig=PrebuiltVoiceConfig replicatedVoiceConfig=ReplicatedVoiceConfig
    voice
PrebuiltVoiceConfig: voiceName
ReplicatedVoiceConfig: consentAudio mimeType voiceConsentSignature=VoiceConsentSignature
    voiceSampleAudio
VoiceConsentSignature: signature
ThinkingConfig: includeThoughts thinkingBudget thinkingLevel
TranslationConfig: echoTargetLanguage targetLanguageCode
SafetySetting: category method threshold
Tool: codeExecution=WebSearch computerUse=ComputerUse enterpriseWebSearch=EnterpriseWebSearch
    functionDeclarations=FunctionDeclaration googleMaps=GoogleMaps googleSearch=GoogleSearch
    googleSearchRetrieval=GoogleSearchRetrieval urlContext=WebSearch
ComputerUse: disabledSafetyPolicies enablePromptInjectionDetection environment
    excludedPredefinedFunctions
EnterpriseWebSearch: blockingConfidence excludeDomains
FunctionDeclaration: behavior description name parameters parametersJsonSchema response
    responseJsonSchema
GoogleMaps: enableWidget groundingTypes=GoogleMapsGroundingTypes
GoogleMapsGroundingTypes: places=WebSearch routing=WebSearch
GoogleSearch: blockingConfidence excludeDomains searchTypes=SearchTypes timeRangeFilter=Interval
Interval: endTime startTime
SearchTypes: imageSearch=WebSearch webSearch=WebSearch
GoogleSearchRetrieval: dynamicRetrievalConfig=DynamicRetrievalConfig
DynamicRetrievalConfig: dynamicThreshold mode
ToolConfig: functionCallingConfig=FunctionCallingConfig includeServerSideToolInvocations
    retrievalConfig=RetrievalConfig
FunctionCallingConfig: allowedFunctionNames mode streamFunctionCallArguments
RetrievalConfig: languageCode latLng=LatLng
LatLng: latitude longitude
embeddings: content=Content model outputDimensionality requests=embeddings taskType title
""",
    camel,
)
