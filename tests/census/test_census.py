"""A fixed sample of the census: sixty architectures of every kind, exact or refused as the page says."""

import re
from pathlib import Path

import pytest
import transformers
from building import architectures
from judging import judge

PAGE = Path(__file__).parents[2] / "docs" / "families.md"
README = Path(__file__).parents[2] / "README.md"
SAMPLE = (
    "AlbertForMaskedLM ASTForAudioClassification AyaVisionForConditionalGeneration BartForConditionalGeneration "
    "BertForSequenceClassification BigBirdForMaskedLM BloomForCausalLM CLIPModel CohereForCausalLM "
    "DebertaV2ForMaskedLM DeepseekV32ForCausalLM DeepseekV3ForCausalLM DeepseekV4ForCausalLM "
    "DeiTForImageClassification DiffLlamaForCausalLM Dinov2Model DistilBertForSequenceClassification "
    "ElectraForMaskedLM FalconForCausalLM FalconH1ForCausalLM FunnelForMaskedLM Gemma2ForCausalLM "
    "Gemma3ForConditionalGeneration Gemma4ForCausalLM GlmMoeDsaForCausalLM GPT2LMHeadModel GPTJForCausalLM "
    "GPTNeoXForCausalLM GptOssForCausalLM GraniteSWAForCausalLM JambaForCausalLM Lfm2ForCausalLM LlamaForCausalLM "
    "LlavaForConditionalGeneration LongformerForMaskedLM MambaForCausalLM MarianMTModel MiMoV2FlashForCausalLM "
    "MistralForCausalLM MixtralForCausalLM ModernBertForMaskedLM MPNetForMaskedLM Olmo3ForCausalLM OPTForCausalLM "
    "PaliGemmaForConditionalGeneration Phi3ForCausalLM Qwen2_5_VLForConditionalGeneration Qwen2ForCausalLM "
    "Qwen2VLForConditionalGeneration Qwen3ForCausalLM Qwen3NextForCausalLM Qwen3VLForConditionalGeneration "
    "RobertaForMaskedLM RwkvForCausalLM SiglipModel T5ForConditionalGeneration ViTForImageClassification "
    "Wav2Vec2ForCTC WhisperForConditionalGeneration XLNetLMHeadModel "
).split()


def rows_of_page() -> dict[str, str]:
    """The verdict of each architecture as the page has it."""
    verdicts: dict[str, str] = {}
    for section in PAGE.read_text().split("\n## ")[1:]:
        title = section.split("\n")[0]
        verdict = {"Exact": "exact", "Refused, with the sentence": "refused"}.get(title, "not built")
        verdicts |= dict.fromkeys(re.findall(r"\b[A-Z]\w+(?:Model|LM|For\w+|Encoder|Decoder)\b", section), verdict)
    return verdicts


def test_the_sample_is_sixty_architectures_of_transformers() -> None:
    assert len(set(SAMPLE)) == 60
    assert set(SAMPLE) <= set(architectures())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SAMPLE)
def test_an_architecture_is_exact_or_refused_as_the_page_says(name: str) -> None:
    transformers.logging.set_verbosity_error()
    found = judge(name)
    assert found.verdict == rows_of_page()[name], found.note


def test_nothing_is_wrong_and_nothing_ends_in_a_raw_error() -> None:
    text = PAGE.read_text()
    assert "\n## Wrong" not in text
    assert "\n## Raw errors" not in text


def test_the_readme_has_the_count_of_the_page() -> None:
    found = re.search(r"\*\*(\d+) are exact", PAGE.read_text())
    assert found is not None
    assert f"{found[1]} architectures" in README.read_text()
