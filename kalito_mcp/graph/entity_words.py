"""Words whose capital tells nothing: English ones, and the commonest of a few other languages. Pure.

A list, because a message is too short to learn from which of its words are ordinary. Ordinary words that are first
names or products as well (Rose, Rust, Slack) are left out: where one opens a sentence, it is more often a name.
"""

from typing import Final

MONTHS: Final = frozenset(
    "january february march april may june july august september october november december jan feb mar apr jun jul aug "
    "sep sept oct nov dec januar februar märz mai juni juli oktober dezember janvier février mars avril juin juillet "
    "août septembre octobre novembre décembre enero febrero marzo abril mayo junio julio agosto septiembre octubre "
    "noviembre diciembre gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre".split()
)
# Never a name by itself, nor a part of one.
NEVER: Final = frozenset(
    """a about above after again against ain't all also although am an and another any anyone anything anywhere are
    aren't as asap at be because been before being below between both btw but by can can't cannot could couldn't did
    didn't do does doesn't doing don't down dr during each eg either en etc even ever every everybody everyone
    everything everywhere few fixme for fri friday fridays from further fyi had hadn't haha has hasn't have haven't
    he her here hers herself him himself his how however hr i idk ie if imho imo in into is isn't it its itself just
    let lol madam madame many me might mine mme mon monday mondays more most mr mrs ms much must my myself nb neither
    never nicht no nobody none nor not nothing now nowhere of off oh ok okay omg on once only onto or other our ours
    ourselves out over own perhaps pm prof ps rather re really same sat saturday saturdays shall she should shouldn't
    since sir so some somebody somehow someone something sometimes somewhere sr sra still such sunday sundays tbh
    than that the their theirs them themselves then there these they this those though through thu thur thurs
    thursday thursdays till to todo together too toward towards tue tues tuesday tuesdays under unless until up upon
    very was wasn't we wed wednesday wednesdays well were weren't what whatever when whenever where whether which
    while who whom whose why wip with within without won't would wouldn't wtf xxx yes yet you your yours yourself
    yourselves""".split()
) | (MONTHS - {"mars"})
# At the beginning of a sentence, never the first word of a name: verbs, adverbs, greetings.
OPENING: Final = frozenset(
    """aber absolutely accept actually add additional adjust agree agreed ah aha aim align allow almost alors already
    alright always analyze anytime anyway apart apologies apparently apply appreciate ask assess assume attend auch
    avec avoid aw awesome aww ayer based basically begin believe besides bitte block bonjour book break bring build
    bummer buy bye c'est call came cancel catch ce cette change chat che check cheers choose ciao clean clear click
    close come comment como compare compile complete con conduct configure confirm congrats congratulations consider
    contact continue convert copy correct create cut cómo damn dang danke dann dans das date dear debug decide define
    definitely delete deploy der des describe det determine develop die disable discuss domani donc double dove draft
    draw drop dónde edit een ein eine else enable engage enjoy ensure er es est esta este estoy está et eu eventually
    exactly except explain explore export extract feel feels felt fetch figure fill final finally find finish first
    fix focus fold follow forget format fortunately gather generally generate get give given glad gli go going gonna
    goodbye gosh got gotcha gotta grab gracias grazie guess ha hah hallo handle hang happen happened hear heard hej
    hello help het heute hey hi hide hier highlight hmm ho hola hold honestly hope hopefully hoping hoy hun hurry ich
    ignore ik il imagine implement import improve include indeed insert inside install instead introduce invite io
    ist j'ai ja jag je jij join jump keep kindly know kudos last lately later learn leave lemme less lets leur like
    likely link list listen literally lo load log look looking lots love loved ma made maintain mais make making
    manage mark maybe mañana mean meanwhile meet mein meine merci merge message mi mind morgen mostly move muy más
    nah name naturally ne need nein nej next noi non nope normally note notice nous não obrigado obviously och offer
    often oggi oof oops open order otherwise ouch oui outside override pack paint para parse pas pass paste pay
    people perché pero pick place plan play please plus por post pour pourquoi practice prefer prepare press pretty
    print probably process promise proud provide publish pull push put quand quando que questo quick quickly quite
    qué reach read rebase recently record reduce refactor refine reflect reject relax release remember remind remove
    rename replace reply report request require reset resolve respect restart return revert review revise rewrite run
    sa said salut save saw say schedule se search see seek seems select sell send ses set share ship show si sie sign
    sim similarly simply skip somewhat sono soon sorry sort sounds speaking spend split squash start stay stick stop
    store su submit suggest support suppose sur sure surely switch sync sí tack tailor take talk tell tengo text
    thank thankfully thanks therefore think thought thus ti today told tomorrow tonight tons took touch track
    translate travel treat truly try trying tu turn type typically ugh uh un una und understand une unfortunately
    uninstall unlike update upgrade upload use used using usually validate verify via visit visiting vivo você vous
    voy wait walk wann wanna want wanted warum wash watch watched wear welcome went whoa wie wij will wir wish wo
    woah wonder woohoo work worked worse wow write y y'all yay yea yeah yep yesterday yo yum yup zij är а в вчера вы
    где да завтра и как когда мой моя мы на не нет но он она они почему привет сегодня спасибо ты у что это я""".split()
)
# At the beginning of a sentence, no name when it stands alone; "New York" and "Red Cross" are.
COMMON: Final = frozenset(
    """ability able absence abstract abuse access accident account accountant accuracy acid acne act action actor actors
    adapter addiction address admin admission admit adult adults advantage adventure advice afternoon age agency
    agenda agreement aid air airline airport alarm album alcohol alert algorithm alias alimony allergies allergy
    alpha amazing ambulance analysis anger angle animals ankle annoying annual answer ant ants anxiety anxious
    apartment app append appetite apple apples appliance applicant appointment approach approval apps apron aquarium
    architecture archive area argue argument arm armor army array arrays arrival arrow art article ashamed asleep
    assets assignment assistant asthma athlete athletes attach attack attempt attention attic attitude attorney
    auction audience audio audit author authors auto autumn average avocado awake award aware awareness awful awkward
    axis baby babysitter back backend background backpack backup bacon bacteria bad badge bag baggage bags bake
    baking balance balcony bald ball ballet balloon banana band bandage bandwidth bank banker banking bar barber bare
    bark barn base basement basic basket basketball bass batch bath bathroom batteries battery battle beach beans
    bear beard beast beat beautiful beauty bed bedroom bee beef beer beginner behavior behaviour bell belt bench
    benefit benefits berries best bet beta better bicycle big bike bikes biking bird birds birth birthday birthdays
    biscuit bit bite bitter black blank blanket blast blender blessing blind blister blocks blog blood blue
    blueberries board boat body boil boiler bold bone bones bonus books boot boots border bored boring borrow boss
    bottle bottles bottom bowl box boxes boy boys brain brake brakes branch branches brand brave bread breakfast
    breaks breast breath breathe breathing breeze brick bride bridge brief briefly bright broken brother brothers
    brown browser brush bucket buckets budget buffer bug bugfix bugs building buildings bulb bulk bullet bump burger
    bus business busy butcher butter button buttons buyer buyers cabbage cabin cabinet cable cables cache caching
    caffeine cage cake cakes calcium calendar calm calories camel camera camp campaign camping canal cancer candle
    candles candy canvas capacity capital caption car carbon cards care career careful careless carpet carrots carry
    cart cartoon case cash castle cat category catering cats cattle ceiling celebration cell cement center central
    century cereal ceremony certain chain chair chairs chalk challenges champion chance channel chaos chapter
    character charge charger charming chart cheap checklist checkout cheek cheese chef chemistry cherry chess chest
    chewing chicken child childhood children chili chimney chin chips chocolate choice choices choir cholesterol chop
    chores church cinema circle citizen city civil claim clarify clarity class classes classic classify clay cleaner
    cleaning clerk clever client climate climb climbing clinic clip clock clone closet cloth clothes cloud clouds
    club clue clumsy cluster coach coal coast coat cocktail coconut code coding coffee coin coins cold collar
    colleague colleagues collect collection college color colorful colour column comedy comfort comfortable command
    commands comments commit commitment commits committee common communication commute commuting companies company
    compass compete compiler complaint complex complicated compound compression compromise computer computers concern
    concert concerts conclusion condition conference confess confidence conflict confused confusing confusion connect
    connection constant content context contract contractor control convenient conversation conversations cook cookie
    cookies cooking cool copper copyright cord core corn corner cortisol cost costs cotton couch cough council
    counselling counter country county couple courage course courses court cousin cousins cover coverage cows cozy
    crab cracker craft crash crazy cream creation credit creditors crew cricket crime crisis criteria critical crop
    cross crowd crowded crown cruel cruise cry crying cuisine culture cup cupboard cups cure curiosity curious
    currency current curry curtain curtains curve custom customer customers customize cute cycle cycling dad daily
    dairy damage damp dance dancer dancing danger dangerous dark darkness darling dashboard data database dates
    daughter day daylight days dead deadline deal death debt debts debugging decade decades decent decision decisions
    deck decode decoration deduce deep deer defeat defense degree delay delays delicate delicious delightful delivery
    demand demo dental dentist deny deployment deployments depressing depression depth derive desert design designer
    desk desktop desperate dessert destination detach details detect detergent developer developers device devices
    diabetes diagnosis diagram dialog diamond diaper diapers diary dictionary diet different difficult dig digital
    dim dinner dinners diploma direct direction directory dirt dirty disappointed disaster discipline disconnect
    discount discovery disease disgusting dish dishes dishwasher disk display disregard distance divorce divorced
    dizzy docs doctor documentation documents dog dogs dollar dollars domestic donate donation donations done donkey
    door dose doubt dough downside downtown dozen dozens drag drama drawer drawing drawings dream dreams dress
    dresses drill drink drinks drive driver drivers driving drum drums dry duck dull dust duty eager ear early earn
    earring ears earth east easy eat economy editing editor effect effort egg eggs eight el elaborate elbow elderly
    election elections electric electricity electronics elegant element elephant elevator email emails embarrassing
    embassy embed emergency emotion emotions empire employee employees employer empty encode encoding encouraging
    encryption end endless endpoint endpoints energy engine engineer engineering engineers enormous enough enter
    entertainment entrance entry envelope environment equipment error errors escape essay essays essential estate
    eternal evaluate evening evenings event events everyday evidence evil exact exam examine example examples
    excellent exchange excitement excuse execute execution executive exercise exercises exhausted exhausting exit
    expand expected expensive experience expert experts explanation explosion exports expose expression extension
    extra eyelid eyes fabric face fact factor factory facts fail failure fair fairness fake fall fame familiar family
    famous fan fans fantastic fantasy far fare farewell farm farmer farmers farming fascinating fashion fast fat fate
    father fatigue fault favor favorite favourite fear feather feature fee feed feedback feeling feelings fees feet
    fellow fence ferry festival festivals fetching fever fiber fiction field fields fierce fight figures file files
    filing film filter finance finances fine finger fingers finishing fire firefighters fireplace fireworks firm fish
    fishing fitness five fixes flag flags flame flashlight flat flatten flavor flaw fleet flesh flexible flight
    flights flip flood floor floors flour flow flower flowers flu fluffy fluid flush fly foam fog foggy folder folk
    folks followers font food foolish foot football forgive forgotten fork form formal formatting forms formula
    fortune forum forward foundation fountain fragile frame framework free freedom freelance freeze freezer freezing
    frequency frequent fresh fridge friend friendly friends frog front frontend frost frozen fruit frustrating fry
    fuel fuels full fun function functions fund funding funeral funny fur furniture future gadget gadgets gain
    gallery gambling game games gap garage garbage garden gardening gardens garlic garment gas gate gauge gear gender
    generation generations genetic genius gentle gentleman ghost giant gift gifts gigantic girl girls giving glass
    glasses globe glorious gloves glue goal goals goat gold golf good goodness goods gorgeous gossip government
    governments graceful grade grades graduation grain grammar grandchildren granddaughter grandparents grandson
    grape grapes graph graphics grass grateful gratitude grave gravity gravy grease great greed greedy green greet
    greetings grey grief grill grim groceries grocery ground grow growing grumpy guarantee guard guest guests
    guidance guide guideline guilt guitar gum gun gut guys gym gymnastics habit habits hail hair haircut half hall
    halt ham hammer hand handbag hands handsome handwriting handy happiness happy harbor hard hardware harmless
    harmony harsh harvest hash hat hate hazard head headache headaches heading headline headphones healing health
    healthcare healthy heart heat heater heating heaven heavenly heavy heel height helmet helper helpful helpless
    herb herbs hero heroes hidden high hike hiking hilarious hill hint hip historic history hit hive hobby hockey
    hole holiday holidays hollow home homes homework honest honey hood hook hopes horn horrible horror horse horses
    hospital hospitals host hostel hostels hostile hosting hotel hotels hour hours house household housework housing
    hug huge hugs human humans humble humor hundreds hunger hungry hunt hunting hurricane husband hygiene hyper ice
    icon icy idea ideal ideas identical identify identity ill illegal illness image images imagination immediate
    immigration immune impact impatience impatient importance impossible impression inbox incense inch incident
    income incorrect incredible indentation index indexes indexing indoor industry infection inflammation inflation
    info information ingredients inheritance initial inject injured injury inline inn innocent input insane insect
    insects inspect inspection inspiration installation instance instances instructions instrument insulin insurance
    integer integrate intelligence intent intercept interesting interface internet internship interview interviews
    introduction inventory invert invest investment investments investors invitation invitations invoice invoices
    iron irony island issue issues item items iterate jacket jail jam jar jealous jeans jelly jet jewel jewelry job
    jobs jog jogging joints joke jokes joking jolly journal journalists journey judge judgement juice juicy jungle
    jury justice justify kayaking kennel kernel kettle key keyboard keys keywords kick kicking kid kidney kids kill
    kilo kind kindness kiss kit kitchen kitten kittens knee kneel knees knife knit knitting knives knot knowledge la
    lab label labels labor lack ladder ladies lady lake lakes lamb lame lamp lamps land landlord landlords landscape
    lane language languages laptop laptops large las laser late latency laugh laughter laundry law lawn laws lawyer
    lawyers layer layers layout lazy le lead leader leaders leadership leaf league leak lean leap lease leather
    leaves lecture lectures left leg legal legend legs leisure lemon lemons lend lens lentils les lesson lessons
    letter letters lettuce level levels lever liberty library licence license lid lie life lift lifting light
    lighting lightning limit limits linen lines lion lip lips liquid liquor literacy literature litter little lively
    liver livestock living lizard loading loan loans lobby lobster local location lock locker lockers locks logs
    loneliness lonely long loop loops loose los loss losses lotion lottery loud lounge lovely low lower loyal loyalty
    luck luckily lucky luggage lumber lunch lung lungs luxury lyrics machine machines macro macros mad magazine magic
    magnificent mail mailbox main major makeup mammals man management manager managers mango manners manual manuals
    manuscript map maple maps marathon marble margin marinade market marketing markets marriage mask massage massive
    master match matches material materials math mathematics matter mattress mature max maximum mayo mayonnaise mayor
    meal meals measure measurements meat mechanic medal media medical medication medications medicine meditation
    medium meeting mellow melody melon melt member members membership meme memo memories memorize memory men mental
    menu menus merchandise merit mess messages messy metabolism metadata metal method methods metric metrics mice
    microphone microwave middle midnight migraine migraines migration migrations mild mile military milk mill
    millions min mineral minimal mining ministry minor mint minute minutes miracle mirror mirrors miserable misery
    missing mission mistake mistakes misty mix mixed mixture mobile mock mocks mode model models modem modern modify
    module modules moisture mold mole moment moments money monitor monitoring monkey monkeys monster month monthly
    months mood moody moon mop moral morale morning mornings mortgage mosquito mosquitoes moth mother motion
    motivation motor motorbike motorcycle mount mountain mountains mouse mouth movement movie movies mud muddy muffin
    mug multiple murder muscle muscles museum museums mushroom mushrooms music musical musician musicians mustard
    mute mysterious mystery myth nail nails names nanny nap napkin narrative nasty nation national native nature
    naughty nausea navigation navy near neat neck necklace needle negative negotiation negotiations neighbor
    neighborhood neighbors neighbour neighbours nephew nerve nerves nervous nest network networking new news
    newspaper newspapers nice niece night nightmare nightmares nine noble noise noisy noodle noodles noon normal
    normalize north nose notebook notes notification notifications notify novel novels nuclear numb number numbers
    nurse nursery nurses nursing nutrition nuts oak oatmeal oats obesity object objective objects obstacle obvious
    occasion ocean odd offense offers office officer offices oil oils ointment old olives olympics omelette omit
    onboarding one onion onions online opera operation operations opinion opinions opponent opportunity optimal
    optimism optional options orange oranges orchestra orchid ordering orders ordinary organic organisation
    organization organize origin original others outcome outdoor outfit outline output outstanding oven overall
    overdue overpriced overrated overtime overview overwhelmed overwrite owe owl owner owners oxygen oyster pace
    package packages packaging packing pad page pages pain painful painkillers painter painters painting paintings
    pair pairs palace pale palm pan pancake pancakes pandemic panel panic pants paper papers parade paradise
    paragraph parameter parameters parcel parcels parent parents park parking parks parser part partial participants
    particle parties parting partition partner partners partnership parts party passage passenger passengers passion
    passport passports password passwords past pasta pastry patch patches patent path patience patient patients
    pattern patterns pause payday payment payments payroll peace peaceful peak peanut peanuts pear pears peas
    pediatrician peel pen penalty pencil pencils pension pepper percent perfect perform performance perfume period
    permission permissions permit persist person persons perspective pets pharmacy phase phone phones phoning photo
    photograph photographer photographers photography photos phrase physical physician physics physio physiotherapy
    piano picnic pictures pie piece pieces pig pigs pile pill pillow pillows pills pilot pilots pin pine ping pink
    pipe pipeline pipelines pitch pizza plain plane planes planet planning plans plant plants plaster plastic plate
    plates platform player players playground playing playlist pleasant pleasure plenty plot plug plumber plumbing
    pocket pockets podcast podcasts poem poems poet poetry point poison pole police policies policy polite
    politicians politics poll pollen pollution pond pony pool poor pop popular population pork porridge port
    portfolio portion portrait position possible postage postcard postman pot potato potatoes potential pottery
    poverty powder power powerful practical prayer prayers precious precision prediction pregnancy pregnant
    preparation prepend prescription presence present presentation presentations presents president pressure
    prevention preview previous price priceless prices pride priest primary princess principle printer printers
    printing prior prioritize priority prison privacy private prize probability problem problems procedure processes
    processing processor produce producers product production products profession professional profile profit profits
    profound program programmer programmers programming programs progress project projects promotion prompt prompts
    proof propaganda proper property propose prospect protection protein protest protests protocol prototype prove
    proxy prune psychology pub public pudding pulse pump pumpkin punishment pupil pupils puppies puppy purchase
    purchases purge purple purpose purse puzzle puzzles quaint qualification quality quantity quarter queasy queries
    query quest question questions queue quiet quilt quit quiz quota quote quotes rabbit race races racing racism
    radiation radio rails railway rain rainbow raincoat rainy raise raisins ram ramp random range rank rare rash rat
    rate rates ratings ratio rats raw reaction reader readers reading readings ready real realistic reality rearrange
    reason reasonable reasons rebound rebuild recall receipt receipts recent reception recipe recipes recommend
    recommendation recommendations recommended reconnect records recovery recruiter recruiters recycling red redeploy
    redirect redo redundancy reference references reflection refresh refrigerator refugees refund refunds regenerate
    region registration regression regular regulation regulations rehab rehearsal rehearsals rehearse reindex
    reinstall relation relations relationship relationships relative relatives relaxation relaxed releases relevant
    reliable relief religion reload reluctant remap remarkable reminder reminders remote renovation rent rental
    renting reorder repair repairs repeat repetition replacement replication replies repo reporter reports repository
    reproduce reputation requests requirement requirements rescue research researchers resend reservation
    reservations resident residents resistance resize resolution resort resource resources response responses
    responsibility rest restaurant restaurants restore result results resume retail retirement retreat retries
    retrieve retry returns reuse revenge revenue reviewers reviews revoke revolution reward rewards rewind rhythm
    ribbon ribs rice riches riddle ride rides ridiculous riding rifle right rights ring rings riot ripe risk risks
    rival river rivers road roads roast robbery robot robots rock rocket rocks rod role roles rolls romantic roof
    rook room roommate roommates rooms root roots rope roses rotate rotation rotten rough round route router routers
    routes routine row rowing rows royal rubber rubbish rude rug ruin ruined rule rules rumor rumors runner runners
    runtime rush sad sadness safe safety sail sailing salad salaries salary sales salmon salon salt sample samples
    sanctions sand sandals sandwich sandwiches sanitize satellite satisfaction sauce sausage sausages savings
    saxophone scale scan scandal scar scarcity scared scarf scary scenario scene scenery schedules schema schemas
    scholarship school schools science scientist scientists scissors scooter scope score scores scout scratch scream
    screen screens screenshot screenshots screw script scripts scroll sculpture sea seafood seal searching season
    seasons seat seats second secondary seconds secret secretary section sections sector security seed seeds
    selection self selfish selling semester seminar senator senior seniors sense sensible sensitive sensor sensors
    sentence sentences separate separation sequence serial serialize series serious serum serve server servers
    service services session sessions setbacks setting settings settlement setup seven several severe sew sewing sex
    shade shadow shallow shame shampoo shape shark sharp shave sheep sheet sheets shelf shell shelter shelves
    shepherd shift shifts shine shiny shipment shipping ships shirt shirts shock shocked shoe shoes shop shoplifting
    shopping shops shore short shortage shorten shorts shot shots shoulder shoulders shout shower showers shows
    shrimp shrink shuffle shut shutdown shy sibling siblings sick sickness side sidewalk sight signal signals
    signature signatures significance silence silk silly silver similarity simple simplify simulate sincere sing
    singer singers singing single singular sink sister sisters sit site sites situation situations six size skating
    ski skiing skill skills skin skinny skirt sky slang slavery sleep sleeping sleepless sleepy sleeve slice slide
    slides slight slim slippers slippery slope sloppy slots slow small smart smell smile smiles smoke smoking smooth
    smoothie snack snacks snail snake snakes snapshot sneakers sneezing snow snowboarding soap sober soccer society
    sock socks sofa soft softball software soil solar soldier soldiers solid solo solution solutions son song songs
    sore soul sound soup sour source sources south souvenir souvenirs soy space spam span spare speaker speakers
    special species specify spectacular speech speed spell spelling spice spices spicy spider spiders spin spinach
    spine spirit spirits splash spoon sport sports spot spots spouse spray spread spring squad square squirrel
    stability stable stack stadium staff stage staging stain stairs stake stale stamp stamps standard standards
    standing standup star stars starter startup startups starving stash state statement statements static station
    stations statistics statue status steady steak steam steel steep step steps stereo stew sticker sticks sticky
    stiff stir stock stocks stomach stone stones stools storage stories storm storms stormy story straight strange
    strangers strategies strategy straw strawberries strawberry stream streaming street streets strength stress
    stressful stretch strict strike strikes striking string strings strip stroke stroller strong structure structures
    struggle stubborn student students studies studio study studying stuff stunning stupid style subject submarine
    subscribers subscription subscriptions substance subtle suburb subway success successful sudden sufficient sugar
    suicide suit suitable suitcase suitcases suits sum summarise summarize summary summer summers sun sunburn
    sunglasses sunlight sunrise sunscreen sunset sunshine super superb supermarket supper supplement supplements
    supplies supply suppress surface surgeon surgery surprise surprised surprises surprising survey surveys survival
    survivor sushi suspect suspicious swap swear sweat sweater sweaters sweep sweet sweets swelling swim swimmer
    swimming switches sword syllabus symbol symbols sympathy symptom symptoms syntax syrup system systems table
    tables tablet tablets tag tags tail talent talks tall tank tap tape target tariffs task tasks taste tastes tasty
    tattoo tattoos tax taxes taxi taxis tea teach teacher teachers teaching team teamwork tear tears tech technical
    technique technology tedious teen teenager teenagers teeth telephone telescope television temper temperature
    temperatures template templates temple temples temporary ten tenant tenants tender tennis tense tension tent
    tents term terminal terms terrace terrible terrific terror test testing tests textbook textbooks texts texture
    thaw theater theatre theft theme themes theory therapist therapists therapy thermometer thesis thick thief
    thieves thin thing things thinking third thirst thirty thorough thoughts thousands thread threads threat three
    throat throne thumb thunder thunderstorm ticket tickets tide tides tidy tie tiger tight tile tiles timber time
    timeline timeout timeouts timer times timezone timing tiny tips tire tired tires tissue tissues title titles
    toast toaster tobacco toddler toddlers toe toes toggle toilet token tokens tolerable tolerance toll tomato
    tomatoes tone tongue tonsils tool tools tooth toothache toothpaste top topic topics torch tortoise total touching
    tough tour tourism tourist tourists tours towel towels tower town towns toy toys trace traceback tracks trade
    traders trading tradition traditional traditions traffic tragic trail trailer trails train trainer trainers
    training trains transaction transactions transfer transfers transform transit transition translation translations
    transmission transport transportation trap trash traveler travelers traveling travelling tray treasure treatment
    treatments tree trees tremendous trend trends trial trials triangle tribe tribute trick tricks tricky trigger
    triggers trim trip triplets trips triumph trophy tropical trouble trousers truck trucks true trumpet truncate
    trunk trust trustees truth tube tuition tuna tune tunes tunnel turmeric turnover turtle turtles tutor tutorial
    tutorials tutors tweak twelve twenty twice twin twins twist two types typical typing typo typos tyres ugly ulcer
    ultimate umbrella umbrellas unable uncertainty unclear uncomfortable underwear undo unemployment unexpected
    unfair unfortunate unhappy unhealthy unicorn uniform uniforms unify union unique unit units universe university
    unknown unlikely unlock unlucky unmount unnecessary unpin unpleasant unreal unrelated unreliable unstable untrue
    unusual unwind unwrap unzip upcoming upgrades uploads upright upset urban urgent usage useful useless user users
    usual utilities utility vacancy vacation vacations vaccine vaccines vacuum vague valley valuable value values van
    vanilla vans variable variables variant variety various vase vast veal vegan vegans vegetable vegetables
    vegetarian vegetarians veggies vehicle vehicles vein vendor vendors ventilation verdict verse version vet veteran
    veterans vets vibration vicious victim victims victory video videos view views villa village villages vinegar
    violence violin virus viruses visa visas visibility vision visitor visitors visits visual visualize vital vitamin
    vitamins vivid vocabulary voice voices volcano volleyball volume volunteer volunteers vomiting vote voter voters
    votes voting voucher vouchers voyage vulnerable wage wages waist waiter waiters waiting waitress walking walks
    wall wallet wallets walls walnut walnuts war wardrobe warehouse warm warmth warn warning warnings warranty wars
    washing wasp waste watches watching water waterfall wave waves wax way weak wealth wealthy weapon weapons wearing
    weary weather webcam website websites wedding weddings weed week weekend weekends weekly weeks weigh weight
    weights weird welfare west wet whale whales wheat wheel wheels whip whiskey whisper whistle white wicked wide
    widow width wife wild wildlife willpower wind window windows winds wine wing wings winner winners winter winters
    wipe wire wireless wires wisdom wise witch withdraw witness witnesses witty wolves woman women wonderful wood
    wooden woods wool word words worker workers workflow workflows working workout workouts workplace workshop
    workshops world worm worms worried worries worst worth worthless worthwhile wound wounds wrap wrapper wrapping
    wrestling wrist writer writers writing wrong yard yarn year yearly years yeast yell yellow yields yoga yogurt
    yolk young youth yummy zebra zero zip zipper zone zones zoo""".split()
)
ORDINARY: Final = NEVER | OPENING | COMMON
# Written in capitals for stress; other words of three letters and more may be acronyms, as RAM and CAT.
STRESSED: Final = frozenset(
    """amazing bad best big crazy easy free full good great happy hard high hot huge important less long lovely new nice
    old own perfect please ready real right same special super terrible true urgent wrong zero""".split()
)
# After a verb that opens a sentence; a name has a verb there.
OBJECTS: Final = frozenset(
    "a all an another any each every her him his it me my of our some than that the their them these this those to up "
    "us what which your".split()
)
# They end like verbs.
NO_VERBS: Final = frozenset("united allied boeing beijing sterling".split())
# After a name that looks like a plural; so does a verb of one person: "James called", "Jonas says".
SINGULAR_VERBS: Final = frozenset("is was has had said told and or came went got".split())
# After one who is addressed and a comma; otherwise a list begins.
ADDRESSING: Final = frozenset(
    "are can could did do does have how i i'm is let my our please so thank thanks what when where who why will would "
    "you".split()
)
