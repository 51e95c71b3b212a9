//! Letters without their accents.

/// Lower-case letters of Latin scripts, each before the letter that it is with an accent, in order of their code.
const PAIRS: &[&str] = &[
    "àaáaâaãaäaåaçcèeéeêeëeìiíiîiïiñnòoóoôoõoöoùuúuûuüuýyÿyāaăaąaćcĉcċcčcďdēeĕeėeęeěeĝgğgġgģgĥhĩiīiĭiįiĵj",
    "ķkĺlļlľlńnņnňnōoŏoőoŕrŗrřrśsŝsşsšsţtťtũuūuŭuůuűuųuŵwŷyźzżzžzơoưuǎaǐiǒoǔuǖuǘuǚuǜuǟaǡaǧgǩkǫoǭoǰjǵgǹnǻa",
    "ȁaȃaȅeȇeȉiȋiȍoȏoȑrȓrȕuȗușsțtȟhȧaȩeȫoȭoȯoȱoȳyḁaḃbḅbḇbḉcḋdḍdḏdḑdḓdḕeḗeḙeḛeḝeḟfḡgḣhḥhḧhḩhḫhḭiḯiḱkḳkḵkḷl",
    "ḹlḻlḽlḿmṁmṃmṅnṇnṉnṋnṍoṏoṑoṓoṕpṗpṙrṛrṝrṟrṡsṣsṥsṧsṩsṫtṭtṯtṱtṳuṵuṷuṹuṻuṽvṿvẁwẃwẅwẇwẉwẋxẍxẏyẑzẓzẕzẖhẗtẘw",
    "ẙyạaảaấaầaẩaẫaậaắaằaẳaẵaặaẹeẻeẽeếeềeểeễeệeỉiịiọoỏoốoồoổoỗoộoớoờoởoỡoợoụuủuứuừuửuữuựuỳyỵyỷyỹy",
];

/// The letter without its accent.
pub(crate) fn base(letter: char) -> char {
    if letter.is_ascii() {
        return letter;
    }
    let pairs = PAIRS.iter().flat_map(|line| line.chars().zip(line.chars().skip(1)).step_by(2));
    pairs.into_iter().find(|(accented, _)| *accented == letter).map_or(letter, |(_, base)| base)
}

#[cfg(test)]
mod tests {
    use super::base;

    #[test]
    fn accents_go_and_other_letters_stay() {
        let plain: String = "zürich crème łódź ñandú ảnh öåß天я".chars().map(base).collect();
        assert_eq!(plain, "zurich creme łodz nandu anh oaß天я");
    }
}
